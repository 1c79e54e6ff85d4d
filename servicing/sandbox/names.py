"""Data for a demo portfolio: invented names, businesses, streets and notes, and real cities with their ZIP codes."""


def _split(text: str) -> list[str]:
    """Split a text at its bars."""
    return [" ".join(part.split()) for part in text.split("|")]


FIRST_NAMES = _split("""
    Abigail | Adaeze | Alejandro | Amara | Anders | Anjali | Beatriz | Benedict | Bronwyn | Camille | Cedric |
    Chiara | Claudette | Dariusz | Delphine | Desmond | Diego | Elena | Emeka | Esther | Fatima | Felix |
    Freya | Gideon | Giulia | Hana | Harriet | Hector | Imani | Ingrid | Isaac | Ivana | Jamal | Joanna |
    Joaquin | Kamala | Kenji | Lars | Leila | Lorenzo | Lucinda | Magnus | Malik | Marisol | Meera | Miriam |
    Nadia | Naomi | Nikolai | Olivia | Omar | Oscar | Paloma | Pauline | Quentin | Rafael | Renata | Rosalind |
    Rupert | Saoirse | Selma | Simon | Sofia | Tamsin | Tariq | Theodora | Thomas | Uma | Valeria | Victor |
    Wanda | Xiomara | Yasmin | Yusuf | Zora
""")

LAST_NAMES = _split("""
    Abernathy | Achebe | Alvarado | Amundsen | Baptiste | Barnaby | Bellweather | Bianchi | Blackwood |
    Calloway | Castellanos | Chaudhary | Cisneros | Coleridge | Dalgaard | Delacroix | Dunmore | Ellingsen |
    Esposito | Fairbairn | Ferreira | Fitzgerald | Galbraith | Gustafsson | Hargreaves | Hathaway |
    Hollingsworth | Ibarra | Ishikawa | Jankowski | Kaplan | Kavanagh | Keller | Kowalczyk | Lachance |
    Lindgren | Lockhart | Maldonado | Mbeki | McAllister | Mendoza | Montague | Nakamura | Novak | Obafemi |
    Okonkwo | Olmstead | Oyelaran | Pappas | Pellegrino | Pemberton | Quintero | Radcliffe | Ramaswamy |
    Rinaldi | Rosenthal | Sandoval | Sinclair | Stavros | Sutherland | Tanaka | Thibodeaux | Underhill |
    Vandermeer | Villanueva | Wainwright | Whitlock | Xiong | Yamamoto | Zielinski | O'Brien | O'Malley |
    D'Angelo | Smith-Okafor
""")

TRADES = _split("""
    Bakery | Roofing | Farm Supply | Machine Works | Dental Group | Landscaping | Freight | Cold Storage |
    Print Shop | Catering | Veterinary Clinic | Plumbing | Orchards | Brewing | Outfitters | Millwork |
    Auto Body | Physical Therapy | Textiles | Pharmacy | Boatworks | Coffee Roasters | Masonry | Tool Rental |
    Event Rentals | Nursery | Welding | Bookbinding | Moving and Storage | Tile and Stone | Solar | Childcare |
    Refrigeration | Hardware
""")

BUSINESS_PLACES = _split("""
    Cedar Hollow | Blue Heron | North Fork | Juniper Ridge | Old Mill | Copper Canyon | Willow Bend |
    Harbor Point | Stone Bridge | Prairie Star | Red Barn | Silver Creek | High Desert | Lakeshore |
    Granite Peak | Sun Valley | Pine Street | Riverbend
""")

STREETS = _split("""
    Alder Street | Birch Avenue | Canal Street | Commerce Way | Division Street | Elm Court | Foundry Lane |
    Front Street | Garden Row | Industrial Parkway | Jefferson Avenue | King Street | Lincoln Highway |
    Market Street | Mill Road | Orchard Road | Pearl Street | Quarry Road | Railroad Avenue | Second Street |
    Spruce Street | Union Square | Vine Street | Wharf Road
""")

CITIES = [
    tuple(row.split(", "))
    for row in _split("""
    Portland, OR, 97205, 503 | Seattle, WA, 98104, 206 | Spokane, WA, 99201, 509 | Boise, ID, 83702, 208 |
    Sacramento, CA, 95814, 916 | Fresno, CA, 93721, 559 | San José, CA, 95112, 408 |
    La Cañada Flintridge, CA, 91011, 818 | Oakland, CA, 94607, 510 | Reno, NV, 89501, 775 |
    Phoenix, AZ, 85004, 602 | Santa Fe, NM, 87501, 505 | Española, NM, 87532, 505 | Cañon City, CO, 81212, 719 |
    Denver, CO, 80202, 303 | Salt Lake City, UT, 84111, 801 | Billings, MT, 59101, 406 |
    Cheyenne, WY, 82001, 307 | Fargo, ND, 58102, 701 | Sioux Falls, SD, 57104, 605 | Omaha, NE, 68102, 402 |
    Wichita, KS, 67202, 316 | Tulsa, OK, 74103, 918 | Austin, TX, 78701, 512 | El Paso, TX, 79901, 915 |
    New Orleans, LA, 70112, 504 | Little Rock, AR, 72201, 501 | Memphis, TN, 38103, 901 |
    Birmingham, AL, 35203, 205 | Savannah, GA, 31401, 912 | Tampa, FL, 33602, 813 | Charleston, SC, 29401, 843 |
    Raleigh, NC, 27601, 919 | Richmond, VA, 23219, 804 | Washington, DC, 20005, 202 |
    Baltimore, MD, 21202, 410 | Wilmington, DE, 19801, 302 | Philadelphia, PA, 19103, 215 |
    Newark, NJ, 07102, 973 | New York, NY, 10013, 212 | Buffalo, NY, 14202, 716 | Hartford, CT, 06103, 860 |
    Providence, RI, 02903, 401 | Boston, MA, 02110, 617 | Burlington, VT, 05401, 802 |
    Portland, ME, 04101, 207 | Concord, NH, 03301, 603 | Cleveland, OH, 44113, 216 | Detroit, MI, 48226, 313 |
    Indianapolis, IN, 46204, 317 | Chicago, IL, 60606, 312 | Milwaukee, WI, 53202, 414 |
    Minneapolis, MN, 55401, 612 | Des Moines, IA, 50309, 515 | St. Louis, MO, 63101, 314 |
    Louisville, KY, 40202, 502 | Jackson, MS, 39201, 601 | Charleston, WV, 25301, 304 |
    Anchorage, AK, 99501, 907 | Honolulu, HI, 96813, 808 | Mayagüez, PR, 00680, 787 | Bayamón, PR, 00959, 787 |
    Hagåtña, GU, 96910, 671 | Charlotte Amalie, VI, 00802, 340
""")
]
"""City, state, ZIP code, area code."""

UNUSUAL_BUSINESSES = (
    ("O'Hara's Oyster House LLC", "LIMITED_LIABILITY_COMPANY"),
    ("D'Angelo, D'Amico & Daughters", "GENERAL_PARTNERSHIP"),
    ("Bob's", "SOLE_PROPRIETORSHIP"),
    ("3 Rivers Tool & Die Inc.", "CORPORATION"),
    ("Crème de la Crème Bakery LLC", "LIMITED_LIABILITY_COMPANY"),
    ("Willamette Valley Seed and Feed LP", "LIMITED_PARTNERSHIP"),
    ("Vandermeer Consulting Engineers LLP", "LIMITED_LIABILITY_PARTNERSHIP"),
)
"""Names with apostrophes, symbols, digits or accents, and a very short one; the first businesses have them."""

LONG_NAMES = {
    56: "The Greater Willamette Valley Agricultural Equipment, Seed, Feed and Irrigation Cooperative Holding "
    "Company of Oregon and Southwest Washington LP",
    58: "Société Générale de Chocolat de la Louisiane LLC",
    65: "Hollingsworth-Vandermeer, Castellanos, Abernathy and Thibodeaux Consulting Engineers LLP",
}
"""Very long names by the number of their business. Their accounts need no attention, so lists don't begin with them."""

LINE_NOTES = _split("""
    Draw to checking ending 4821 | Draw to checking ending 0937 | Supplier payment | Equipment deposit |
    Payroll advance | Inventory purchase | Fuel and freight | Insurance premium | Property tax |
    Card purchase, office supplies | Card purchase, hardware | Card purchase, travel
""")

PURPOSES = ("Working capital", "Equipment", "Expansion", "Refinancing", "Inventory for the season")
INDUSTRIES = ("Retail", "Construction", "Agriculture", "Health care", "Food service", "Manufacturing")
