package money

import (
	"fmt"
	"strings"
)

// Currency is an ISO 4217 code with the number of decimal digits of its minor unit.
// The zero value is no currency.
type Currency struct {
	code     string
	exponent int
}

// ParseCurrency finds a currency by its ISO 4217 code. Funds, metals and testing codes, which have
// no minor unit, are not currencies here.
func ParseCurrency(code string) (Currency, error) {
	for exponent, codes := range codesByExponent {
		for c := range strings.FieldsSeq(codes) {
			if c == code {
				return Currency{code: code, exponent: exponent}, nil
			}
		}
	}
	return Currency{}, fmt.Errorf("%q is not an ISO 4217 currency code; use one such as INR, USD or JPY", code)
}

// Code is the ISO 4217 code.
func (c Currency) Code() string { return c.code }

// Exponent is the number of decimal digits of the minor unit: 2 for INR, 0 for JPY, 3 for KWD.
func (c Currency) Exponent() int { return c.exponent }

func (c Currency) String() string { return c.code }

// unit is how many minor units make one major unit.
func (c Currency) unit() int64 {
	unit := int64(1)
	for range c.exponent {
		unit *= 10
	}
	return unit
}

// codesByExponent is ISO 4217 list one, as amended to 2026, by the exponent of the minor unit.
var codesByExponent = map[int]string{
	0: `BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF`,
	2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF
		CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD
		GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL
		MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR
		PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP
		TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG`,
	3: `BHD IQD JOD KWD LYD OMR TND`,
	4: `CLF UYW`,
}
