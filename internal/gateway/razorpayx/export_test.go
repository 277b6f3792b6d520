package razorpayx

// ContactName is how a holder's name is written for the gateway.
var ContactName = contactName
