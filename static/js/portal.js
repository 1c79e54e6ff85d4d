// Small behaviours on data-* attributes. Every screen works without this file; with it, it is quicker.
"use strict";

document.documentElement.dataset.ready = "";
