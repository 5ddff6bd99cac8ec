"""One vocabulary for both formats: the words that Primavera shows to people.

An XER file holds the codes of the database, PMXML the words themselves. A value that is not in
these tables is kept as it stands.
"""

ACTIVITY_TYPES = {
    "TT_Task": "Task Dependent",
    "TT_Rsrc": "Resource Dependent",
    "TT_LOE": "Level of Effort",
    "TT_Mile": "Start Milestone",
    "TT_FinMile": "Finish Milestone",
    "TT_WBS": "WBS Summary",
}
STATUSES = {
    "TK_NotStart": "Not Started",
    "TK_Active": "In Progress",
    "TK_Complete": "Completed",
}
CONSTRAINTS = {
    "CS_ALAP": "As Late As Possible",
    "CS_MANDFIN": "Mandatory Finish",
    "CS_MANDSTART": "Mandatory Start",
    "CS_MEO": "Finish On",
    "CS_MEOA": "Finish On or After",
    "CS_MEOB": "Finish On or Before",
    "CS_MSO": "Start On",
    "CS_MSOA": "Start On or After",
    "CS_MSOB": "Start On or Before",
}
CALENDAR_TYPES = {
    "CA_Base": "Global",
    "CA_Project": "Project",
    "CA_Rsrc": "Resource",
}
RESOURCE_TYPES = {
    "RT_Labor": "Labor",
    "RT_Equip": "Nonlabor",
    "RT_Mat": "Material",
}
RELATIONSHIP_TYPES = {
    "PR_FS": "FS",
    "PR_SS": "SS",
    "PR_FF": "FF",
    "PR_SF": "SF",
    "Finish to Start": "FS",
    "Start to Start": "SS",
    "Finish to Finish": "FF",
    "Start to Finish": "SF",
}
UDF_TYPES = {
    "FT_TEXT": "Text",
    "FT_START_DATE": "Start Date",
    "FT_END_DATE": "Finish Date",
    "FT_FLOAT": "Double",
    "FT_FLOAT_2_DECIMALS": "Double",
    "FT_INT": "Integer",
    "FT_MONEY": "Cost",
    "FT_STATICTYPE": "Indicator",
}
UDF_SUBJECTS = {
    "TASK": "activity",
    "PROJWBS": "wbs",
    "PROJECT": "project",
    "RSRC": "resource",
    "Activity": "activity",
    "WBS": "wbs",
    "Project": "project",
    "Resource": "resource",
}
"""What a user-defined field belongs to; fields of anything else are not read."""
