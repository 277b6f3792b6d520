// Package storetest is the one behavioural suite that every engine of package store must pass.
//
// It tests what the ports of the domains promise, through nothing but those ports.
package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/ledger"
	"bursar/internal/money"
	"bursar/internal/payout"
	"bursar/internal/sale"
	"bursar/internal/store"
)

// Engine is what the suite needs of an engine.
type Engine struct {
	// Open opens an empty database that is closed when the test ends.
	Open func(t *testing.T) *store.DB
	// Tamper copies a database, runs a statement on the copy as nobody may, and opens the copy. The
	// original may lose its connections.
	Tamper func(t *testing.T, db *store.DB, statement string) *store.DB
	// Hands runs statements on an open database as nobody may.
	Hands func(t *testing.T, db *store.DB) func(statement string)
	// Columns lists the columns of a table, and whether each is a number.
	Columns func(t *testing.T, db *store.DB, table string) []Column
}

// Column is a column of a table.
type Column struct {
	Name     string
	IsNumber bool
}

// Run runs the whole suite against an engine.
func Run(t *testing.T, e Engine) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *bench){
		"Engine/AClosedDatabaseSaysSo":              testClosed,
		"Auth/UsersAreReadAsTheyWereWritten":        testUsers,
		"Auth/StatsComeFromTheBook":                 testStats,
		"Auth/ATakenEmailSpoilsNobodysTransaction":  testTakenEmails,
		"Auth/OfManyWithOneEmailOneIsMade":          testEmailsAtOnce,
		"Auth/SessionsLiveUntilTheyEndOrExpire":     testSessions,
		"Auth/AdvanceSessionLetsOneThrough":         testAdvanceOnce,
		"Auth/AdvanceSessionExtendsUpToTheCap":      testAdvance,
		"Auth/RefreshesStayOnRecordWhileQuick":      testRefreshes,
		"Auth/UserUnchangedNoticesAChange":          testUserUnchanged,
		"Auth/NoSessionOutlivesASuspension":         testSignInBesideSuspension,
		"Auth/TheThrottleCountsLikeItsModel":        testThrottleModel,
		"Auth/TheThrottleCountsManyAtOnce":          testThrottleAtOnce,
		"Auth/SweepIsBoundedAndLeavesWhatMatters":   testSweep,
		"Auth/ServiceKeysAreFoundByTheirHash":       testServiceKeys,
		"Auth/DecisionsAreListedNewestFirst":        testDecisions,
		"Auth/IdentitiesAreOfOneIssuer":             testIdentities,
		"Auth/ASignInComesBackOnce":                 testUsedSignIns,
		"Auth/WhoIsTakenOverHasNothingOfBefore":     testTakeOver,
		"Auth/NoSessionOutlivesItsIdentity":         testSignInBesideTakeOver,
		"Auth/SessionsAreListedWithWhereTheyAre":    testListedSessions,
		"Auth/UsersAreFoundByTheirEmail":            testFoundUsers,
		"Auth/AdminsAreCountedAtOnce":               testAdminsAtOnce,
		"Bank/TheNewestAccountIsTheCurrentOne":      testBankAccounts,
		"Bank/ARejectionStandsAgainstAVerification": testRejectedBankAccount,
		"Bank/VerificationsAreLeasedOnce":           testVerificationLeases,
		"Bank/ProgressIsCompareAndSet":              testVerificationProgress,
		"Bank/AFormerAccountStaysFormer":            testFormerAccounts,
		"Bank/AccountsInReviewAreListed":            testAccountsInReview,
		"Ledger/EntriesAreReadFromTheNewest":        testEntries,
		"Ledger/PostingsMoveTheRowAndNumberTheBook": testPostings,
		"Ledger/AmountsHaveSixtyFourBits":           testLargeAmounts,
		"Ledger/FloorsHold":                         testFloors,
		"Ledger/ManyCallersSpendABalanceOnce":       testOverspending,
		"Sale/IDsAreTakenOnce":                      testSaleIDs,
		"Sale/RefundsStayWithinTheSale":             testRefundLimits,
		"Sale/DueSalesComeInOrderAndOnce":           testDueSales,
		"Sale/PagesAreNewestFirst":                  testSalePages,
		"Sale/MonthsAreReadInOrder":                 testMonths,
		"Sale/PendingIsSummedByDay":                 testPendingByDay,
		"Payout/ReferencesAreFound":                 testSearch,
		"Payout/WhatWaitsForAPersonIsListed":        testAttention,
		"Payout/MovesAreCompareAndSet":              testMoves,
		"Payout/DuePayoutsAreLeasedOnce":            testLeases,
		"Payout/HintsHastenOnlyWhatWasSent":         testHasten,
		"Payout/TurnsComeOnceInAWhile":              testPayoutTurns,
		"Payout/KeysAreRemembered":                  testKeys,
		"Payout/HistoryIsPagedNewestFirst":          testHistory,
		"Payout/IDsSortAsBytes":                     testOrder,
		"Payout/SummaryIsOneView":                   testSummary,
		"Settings/TheFirstValueStays":               testPins,
		"Settings/TheKeySetIsReplacedByOneOfMany":   testKeySet,
		"Payout/RequestsAreServedOnce":              testRequests,
		"Payout/AFailingRequestHarmsNobody":         testFailingRequests,
		"Payout/OfManyWithOneKeyOneGetsThrough":     testKeysAtOnce,
		"Isolation/WhatIsReadUnderALockStays":       testLockedReads,
		"Isolation/FirstRowsAreMadeOnce":            testFirstUse,
		"Isolation/AFailedStatementEndsTheClosure":  testFailedStatement,
		"Isolation/ATransactionOutlivesItsCaller":   testCallerWhoLeaves,
		"Isolation/BalancesAreLockedInOneOrder":     testReleasesBesideEverything,
		"CatchUp/TheLastSendingIsTheNewest":         testLastSending,
		"CatchUp/PayoutsAreFoundByIDs":              testPayoutsByID,
		"CatchUp/APayoutIsAdoptedOnce":              testAdoption,
		"CatchUp/OverdrawnSellersAreDoubted":        testDoubt,
		"CatchUp/StraysAreNotedOnce":                testStrays,
		"Watch/WhatNeedsLookingAfterIsSeen":         testWatch,
		"Stats/GroupsAreCounted":                    testGroupSizes,
		"Proof/ChainsFollowTheirTransfers":          testChains,
		"Proof/ChainsCatchUp":                       testCatchUp,
		"Proof/CheckpointsHoldAllBooks":             testCheckpoints,
		"Proof/OneMakesACheckpoint":                 testTurns,
		"Proof/NothingBrokenIsSealed":               testNothingBrokenIsSealed,
		"Proof/EveryChangeOfATransferIsFound":       testTampering,
		"Reconcile/LinesAreKeptAsTold":              testStatementLines,
		"Reconcile/DaysAreReadWhole":                testStatementDays,
		"Reconcile/TheClearingAccountIsReadByTime":  testClearingAccount,
		"Reconcile/DifferencesComeAndGo":            testDifferences,
		"Reconcile/OneReconciles":                   testReconcileTurns,
		"Audit/CleanBooksAreClean":                  testCleanAudit,
		"Audit/EveryInvariantIsFound":               testAuditFinds,
		"Audit/HandsInTheDatabaseAreFound":          testHands,
		"Audit/OneRowHidesNothingElse":              testOneRow,
		"Audit/SealsBeganWhenTheDatabaseDid":        testSealedSince,
		"Audit/CleverHandsAreFound":                 testForgeries,
		"Proof/WhatIsMadeUpIsNotChained":            testMadeUp,
	} {
		t.Run(name, func(t *testing.T) { test(t, &bench{T: t, engine: e, db: e.Open(t), now: start}) })
	}
}

func testClosed(_ *testing.T, b *bench) {
	b.must(b.db.Ping(b.ctx()))
	b.must(b.db.Close())
	if err := b.db.Ping(b.ctx()); err == nil {
		b.Error("a closed database answers")
	}
	if err := b.db.Update(b.ctx(), func(*store.Tx) error { return nil }); err == nil {
		b.Error("a closed database is written to")
	}
}

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// bench is what a test works on: an open database and a moment.
type bench struct {
	*testing.T
	engine Engine
	db     *store.DB
	now    time.Time
}

func (b *bench) ctx() context.Context { return b.Context() }

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// update runs fn in a transaction that must succeed.
func (b *bench) update(fn func(*store.Tx) error) {
	b.Helper()
	b.must(b.db.Update(b.ctx(), fn))
}

// atOnce runs fn so many times at once; none may fail.
func (b *bench) atOnce(times int, fn func(i int) error) {
	b.Helper()
	var callers sync.WaitGroup
	for i := range times {
		callers.Go(func() {
			if err := fn(i); err != nil {
				b.Error(err)
			}
		})
	}
	callers.Wait()
}

// seller adds a seller with an open book and a verified bank account.
func (b *bench) seller(id string) string {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), auth.User{
			ID: id, Name: "Asha", Email: id + "@example.com", Role: auth.Seller, CreatedAt: b.now,
		}); err != nil {
			return err
		}
		if err := tx.ReplaceBankAccount(b.ctx(), bank.Account{
			ID: bank.ID("bka_" + id), Seller: id, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234",
			Status: bank.StatusVerified, NameScore: -1, VerificationID: "fav_" + id, CreatedAt: b.now, VerifiedAt: b.now,
		}); err != nil {
			return err
		}
		return tx.OpenBook(b.ctx(), id)
	})
	return id
}

// sell records a sale as package sale does.
func (b *bench) sell(id, seller string, amount money.Amount) {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		inserted, err := tx.InsertSale(b.ctx(), sale.Sale{
			ID: id, Seller: seller, Amount: amount, Month: "2026-11", OccurredAt: b.now, AvailableAt: b.now, CreatedAt: b.now,
			Fingerprint: fmt.Sprintf("%s %d - -", seller, amount),
		})
		if err != nil || !inserted {
			return err
		}
		if err := ledger.Post(b.ctx(), tx, ledger.Posting{
			Seller: seller, At: b.now, Transfers: ledger.Sale(id, amount), Counts: ledger.Counts{Sales: 1},
		}); err != nil {
			return err
		}
		return tx.AddEarnings(b.ctx(), seller, "2026-11", amount)
	})
}

// release makes a sale available as package sale does.
func (b *bench) release(id, seller string, amount money.Amount) {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		if _, err := tx.MarkReleased(b.ctx(), id, b.now); err != nil {
			return err
		}
		return ledger.Post(b.ctx(), tx, ledger.Posting{Seller: seller, At: b.now, Transfers: ledger.ReleaseSale(id, amount)})
	})
}

// fund gives a seller an available balance.
func (b *bench) fund(seller string, amount money.Amount) {
	b.Helper()
	id := "sale for " + seller
	b.sell(id, seller, amount)
	b.release(id, seller, amount)
}

// ask holds an amount for a payout as package payout does.
func (b *bench) ask(id payout.ID, seller string, amount, fee money.Amount) payout.Payout {
	b.Helper()
	p := payout.Payout{
		ID: id, Seller: seller, BankAccountID: bank.ID("bka_" + seller), Amount: amount, Fee: fee, Notes: "rent",
		State: payout.Waiting, Mode: payout.IMPS, RequestedAt: b.now, ArriveAt: b.now.Add(time.Hour), DueAt: b.now,
		AccountHolder: "Asha Rao", AccountLast4: "1234", AccountIFSC: "HDFC0000053",
	}
	b.update(func(tx *store.Tx) error {
		if err := ledger.Post(b.ctx(), tx, ledger.Posting{
			Seller: seller, At: b.now, Transfers: ledger.HoldPayout(string(id), amount), Counts: ledger.Counts{Processing: 1},
		}); err != nil {
			return err
		}
		return tx.InsertPayout(b.ctx(), p)
	})
	return p
}

// move changes a payout's state, with the postings that belong to it.
func (b *bench) move(p payout.Payout, to payout.State, postings ...ledger.Posting) payout.Payout {
	b.Helper()
	from := p.State
	p.State = to
	b.update(func(tx *store.Tx) error {
		moved, err := tx.MovePayout(b.ctx(), from, p, b.now)
		if err != nil {
			return err
		}
		if !moved {
			return fmt.Errorf("%s did not move from %s to %s", p.ID, from, to)
		}
		for _, posting := range postings {
			posting.Seller, posting.At = p.Seller, b.now
			if err := ledger.Post(b.ctx(), tx, posting); err != nil {
				return err
			}
		}
		return nil
	})
	return p
}

// complete takes a payout to its good end.
func (b *bench) complete(p payout.Payout) payout.Payout {
	b.Helper()
	p = b.move(p, payout.Submitting)
	p.GatewayID, p.UTR, p.CompletedAt, p.EndedAt, p.DueAt = "pout_"+string(p.ID[4:]), "HDFCN00000000001", b.now, b.now, time.Time{}
	return b.move(p, payout.Completed, ledger.Posting{
		Transfers: ledger.SettlePayout(string(p.ID), p.Net(), p.Fee),
		Counts:    ledger.Counts{Processing: -1, Completed: 1},
	})
}
