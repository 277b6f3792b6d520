package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"bursar/client"
)

func Example() {
	ctx := context.Background()
	bursar, err := client.New(client.Config{BaseURL: "http://127.0.0.1:8080", Key: os.Getenv("SERVICE_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	seller, err := bursar.CreateSeller(ctx, client.NewSeller{ExternalID: "shop-17", Name: "Asha Rao", Email: "asha@example.com"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := bursar.RecordSale(ctx, client.NewSale{SaleID: "order-1001", SellerID: seller.SellerID, Amount: "1499.50"}); err != nil {
		log.Fatal(err)
	}
	balance, err := bursar.Balance(ctx, client.ExternalID("shop-17"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(seller.Name, "will have", balance.PendingBalance, balance.Currency)
}

func ExampleClient_RequestPayout() {
	ctx := context.Background()
	bursar, err := client.New(client.Config{BaseURL: "http://127.0.0.1:8080", Key: os.Getenv("SERVICE_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	payout, err := bursar.RequestPayout(ctx, client.ExternalID("shop-17"), client.NewPayout{
		Amount:         "1200",
		IdempotencyKey: "weekly-2026-47-shop-17", // stored before, so that the same payout is asked for after a crash
	})
	switch {
	case client.HasCode(err, "insufficient_balance"):
		fmt.Println("nothing to pay out yet")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(payout.PayoutID, "arrives by", payout.EstimatedArrival)
	}
}

func ExampleClient_Follow() {
	ctx := context.Background()
	bursar, err := client.New(client.Config{BaseURL: "http://127.0.0.1:8080", Key: os.Getenv("SERVICE_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	const stored = 1042 // the number of the last event that was handled
	for event, err := range bursar.Follow(ctx, stored, client.PayoutCompleted, client.PayoutReturned) {
		if err != nil {
			log.Fatal(err)
		}
		payout, err := event.Payout()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(payout.SellerID, payout.Status, payout.NetAmount, "store", event.Number)
	}
}

func ExampleWebhooks_Handler() {
	webhooks, err := client.NewWebhooks(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/bursar", webhooks.Handler(func(_ context.Context, event client.Event) error {
		fmt.Println(event.ID, event.Type) // store it under its id, if it is not there
		return nil
	}))
}
