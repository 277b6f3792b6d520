package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"bursar/internal/money"
)

// Amount is an amount in major units of the service's currency, as decimal text such as "1499.50". It is sent and read
// digit by digit and never becomes a floating-point number.
type Amount string

// FromMinorUnits writes an amount of minor units: 149950 in "INR" is "1499.5". It fails if the currency is unknown.
func FromMinorUnits(units int64, currency string) (Amount, error) {
	c, err := money.ParseCurrency(currency)
	if err != nil {
		return "", err
	}
	return Amount(c.Format(money.Amount(units))), nil
}

// MinorUnits counts the amount in minor units of a currency: "1499.5" in "INR" is 149950. It fails if the currency is
// unknown, or if the amount is no number, has more decimal places than the currency, or is larger than 2^53-1.
func (a Amount) MinorUnits(currency string) (int64, error) {
	c, err := money.ParseCurrency(currency)
	if err != nil {
		return 0, err
	}
	units, err := c.Parse(string(a))
	if err != nil {
		return 0, fmt.Errorf("the amount %q can't be counted in %s: %w", string(a), currency, err)
	}
	return int64(units), nil
}

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) {
	number := json.Number(a)
	if number == "" { // encoding/json would write 0
		return nil, errors.New("the amount is missing")
	}
	return json.Marshal(number)
}

// UnmarshalJSON keeps the digits of a JSON number.
func (a *Amount) UnmarshalJSON(text []byte) error {
	var number json.Number
	if len(text) > 0 && text[0] == '"' { // encoding/json takes a number in quotes
		return errors.New("an amount is a JSON number, not a string")
	}
	if err := json.Unmarshal(text, &number); err != nil {
		return err
	}
	*a = Amount(number)
	return nil
}
