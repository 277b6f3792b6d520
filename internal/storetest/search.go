package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bursar/internal/auth"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/search"
	"bursar/internal/store"
)

// searchable are users with names that are hard to find.
func (b *bench) searchable() {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		for i, name := range []string{"Asha Rao", "asha raut", "Élodie O'Neil", "अनीता देसाई", `100% _\ Shop`, "Ἀθηνᾶ"} {
			u := auth.User{ID: fmt.Sprintf("usr_%d", i), Name: name, Email: fmt.Sprintf("u%d@example.com", i), Role: auth.Seller, CreatedAt: b.now}
			if err := tx.InsertUser(b.ctx(), u); err != nil {
				return err
			}
		}
		_, err := tx.InsertImported(b.ctx(), auth.Imported{User: auth.User{
			ID: "usr_imported", Name: "Kabir", Email: "kabir@example.com", Role: auth.Buyer, CreatedAt: b.now, ExternalID: "shop-77",
		}})
		return err
	})
}

// testSearchAll looks for things in every way that they can be named.
func testSearchAll(_ *testing.T, b *bench) {
	b.searchable()
	seller := b.seller("usr_seller")
	b.fund(seller, 10_000_00)
	ids := []payout.ID{"pyt_0VbVJwgVsw2rq7h1Z173Ykxr", "pyt_0VbVJwhAsw2rq7h1Z173YkxR", "pyt_0VbVJwiBaaaaaaaaaaaaaaaa"}
	for i, id := range ids {
		b.complete(b.ask(id, seller, money.Amount(1250_50+100*i), 0))
	}
	inr, err := money.ParseCurrency("INR")
	b.must(err)
	finder := search.Service{Store: b.db, Currency: inr}
	payouts := func(numbers ...int) (all []string) {
		for _, n := range numbers {
			all = append(all, string(ids[n]))
		}
		return all
	}
	for query, want := range map[string][]string{
		"ASHA":                          {"usr_0", "usr_1", "usr_seller"}, // in the order of addresses
		" rao ":                         {"usr_0"},
		"a r":                           {"usr_0", "usr_1"},
		"élodie":                        {"usr_2"},
		"ÉLODIE":                        {"usr_2"},
		"o'neil":                        {"usr_2"},
		"देसाई":                         {"usr_3"},
		"%":                             {"usr_4"},
		"_":                             {"usr_4"},
		`\`:                             {"usr_4"},
		"0%_":                           nil,
		"ἀθηνᾶ":                         {"usr_5"},
		"U3@EXAMPLE":                    {"usr_3"},
		"example.com":                   nil,
		"usr_2":                         {"usr_2"},
		"shop-77":                       {"usr_imported"},
		"nobody":                        nil,
		"1234":                          {"bka_usr_seller"},
		"12345":                         nil,
		"sale for usr_seller":           {"sale for usr_seller"},
		"sale for":                      nil,
		string(ids[0]):                  payouts(0),
		"pyt_0VbVJwg":                   payouts(0),
		"0VbVJw":                        payouts(2, 1, 0),
		"0vbvjw":                        payouts(2, 1, 0),
		"173ykxr":                       payouts(1, 0),
		"3Ykxr":                         nil, // too short
		"pout_0VbVJwgVsw2rq7h1Z173Ykxr": payouts(0),
		"HDFCN00000000001":              payouts(2, 1, 0),
		"1251.5":                        payouts(1),
		"₹ 1,251.50":                    payouts(1),
		"-1251.5":                       nil,
		strings.Repeat("a", 254):        nil,
	} {
		r, err := finder.Find(b.ctx(), query)
		b.must(err)
		var got []string
		for _, u := range r.Users {
			got = append(got, u.ID)
		}
		for _, p := range r.Payouts {
			got = append(got, string(p.ID))
		}
		for _, a := range r.Accounts {
			got = append(got, string(a.ID))
		}
		for _, s := range r.Sales {
			got = append(got, s.ID)
		}
		if len(r.Payouts)+len(r.Accounts)+len(r.Sales) > 0 && r.Names[seller] != "Asha" {
			b.Errorf("%q finds what is %q's", query, r.Names[seller])
		}
		if !slices.Equal(got, want) {
			b.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
	for _, query := range []string{"", " \t", "\x00", "a\nb", "\xff", strings.Repeat("a", 255)} {
		if _, err := finder.Find(b.ctx(), query); err != search.ErrQuery { //nolint:errorlint // that very one
			b.Errorf("%q is answered with %v", query, err)
		}
	}
	if users, err := b.db.MatchUsers(b.ctx(), "", "u", [3]string{"a", "a", "a"}, 2); err != nil || len(users) != 2 {
		b.Errorf("of many, %d are found, %v; want 2", len(users), err)
	}
}
