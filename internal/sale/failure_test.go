package sale_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/sale"
	"bursar/internal/storetest"
)

// TestStore_FailureIsNotSwallowed fails each statement of each thing that the service does.
func TestStore_FailureIsNotSwallowed(t *testing.T) {
	t.Parallel()
	order := sale.NewSale{ID: "order-1", Seller: "usr_seller", Amount: 5000}
	for name, act := range map[string]func(s *fixture) (any, error){
		"record": func(s *fixture) (any, error) {
			_, created, err := s.sales.Record(t.Context(), sale.NewSale{ID: "order-3", Seller: "usr_seller", Amount: 700})
			return created, err
		},
		"record many": func(s *fixture) (any, error) {
			refused, err := s.sales.RecordAll(t.Context(), []sale.NewSale{
				{ID: "order-3", Seller: "usr_seller", Amount: 700}, order, {ID: "order-4", Seller: "usr_buyer", Amount: 100},
			})
			return refused, err
		},
		"record again": func(s *fixture) (any, error) {
			got, created, err := s.sales.Record(t.Context(), order)
			return fmt.Sprint(got.Amount, created), err
		},
		"refund": func(s *fixture) (any, error) {
			_, refund, created, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "refund-2", Amount: 300})
			return fmt.Sprint(refund.Amount, created), err
		},
		"refund again": func(s *fixture) (any, error) {
			_, refund, created, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "refund-1", Amount: 200})
			return fmt.Sprint(refund.Amount, created), err
		},
		"release": func(s *fixture) (any, error) {
			s.now = s.now.Add(72 * time.Hour)
			n, err := s.sales.ReleaseDue(t.Context())
			return n, err
		},
		"adjust": func(s *fixture) (any, error) {
			_, created, err := s.sales.Adjust(t.Context(), adjustment("adjustment-2", 300))
			return created, err
		},
		"adjust again": func(s *fixture) (any, error) {
			_, created, err := s.sales.Adjust(t.Context(), adjustment("adjustment-1", -200))
			return created, err
		},
		"open": func(s *fixture) (any, error) {
			n := opening(500, 300)
			n.Seller = "usr_new"
			created, err := s.sales.Open(t.Context(), n)
			return created, err
		},
		"open again": func(s *fixture) (any, error) {
			n := opening(400, 200)
			n.Seller = "usr_opened"
			created, err := s.sales.Open(t.Context(), n)
			return created, err
		},
		"read": func(s *fixture) (any, error) {
			adjustments, adjustmentsErr := s.sales.Adjustments(t.Context(), "usr_seller", 0, 10)
			list, total, listErr := s.sales.List(t.Context(), "usr_seller", 0, 10)
			months, monthsErr := s.sales.Months(t.Context(), "usr_seller", 2)
			releases, releasesErr := s.sales.Releases(t.Context(), "usr_seller", 10)
			return fmt.Sprint(len(list), total, months, releases, len(adjustments)), errors.Join(listErr, monthsErr, releasesErr, adjustmentsErr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachFailure(t, func(t *testing.T, place storetest.Place) storetest.Story {
				t.Helper()
				s := openShopAt(t, place)
				s.record(order, true)
				s.record(sale.NewSale{ID: "order-2", Seller: "usr_seller", Amount: 3000}, true)
				if _, _, _, err := s.sales.Refund(t.Context(), sale.NewRefund{Sale: "order-1", ID: "refund-1", Amount: 200}); err != nil {
					t.Fatal(err)
				}
				s.adjust(adjustment("adjustment-1", -200), true)
				opened := opening(400, 200)
				opened.Seller = "usr_opened"
				for _, id := range []string{"usr_new", opened.Seller} {
					if err := s.db.Auth().InTx(t.Context(), func(tx auth.Tx) error {
						return tx.InsertUser(t.Context(), auth.User{ID: id, Name: "Asha", Email: id + "@example.com", Role: auth.Seller, CreatedAt: s.now})
					}); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := s.sales.Open(t.Context(), opened); err != nil {
					t.Fatal(err)
				}
				var read any
				return storetest.Story{
					Repeatable: true,
					Act:        func() (err error) { read, err = act(s); return err },
					State: func() string {
						b, err := s.db.Balance(t.Context(), "usr_seller")
						months, monthsErr := s.sales.Months(t.Context(), "usr_seller", 2)
						opened, openedErr := s.db.Balance(t.Context(), "usr_new")
						if err := errors.Join(err, monthsErr, openedErr); err != nil {
							t.Fatal(err)
						}
						s.wantViolated()
						return fmt.Sprintf("%+v %+v %+v %v", b, opened, months, read)
					},
				}
			})
		})
	}
}
