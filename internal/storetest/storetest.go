// Package storetest is the one behavioural suite that every engine of package store must pass.
//
// It tests what the ports of the domains promise, through nothing but those ports.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"bursar/internal/auth"
	"bursar/internal/bank"
	"bursar/internal/keyset"
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
	// Trigger makes the trigger undoing on the table payouts, and NoTrigger drops it.
	Trigger, NoTrigger string
	// SchemaChanges are other changes of the schema.
	SchemaChanges []SchemaChange
	// Waiting is a query with a row for each transaction that waits for another; "" where one transaction writes at a time.
	Waiting string
	// Rows reads the rows of a query, each as one text.
	Rows func(t *testing.T, db *store.DB, query string) []string
	// Columns lists the columns of a table, and whether each is a number.
	Columns func(t *testing.T, db *store.DB, table string) []Column
}

// SchemaChange is a change of the schema, how to undo it, and what is said of it.
type SchemaChange struct {
	Change, Undo, Said string
	// Acts says that a running service stops as well.
	Acts bool
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
		"Gateways/WhatIsOnesIsNotAnothers":              testGateways,
		"Gateways/WhatIsInFlightIsMadeDue":              testRescheduleInFlight,
		"Gateways/PayoutsWithoutOneAreListed":           testPayoutsWithoutGateway,
		"Engine/AClosedDatabaseSaysSo":                  testClosed,
		"Auth/UsersAreReadAsTheyWereWritten":            testUsers,
		"Auth/StatsComeFromTheLedger":                   testStats,
		"Auth/ATakenEmailSpoilsNobodysTransaction":      testTakenEmails,
		"Auth/OfManyWithOneEmailOneIsMade":              testEmailsAtOnce,
		"Auth/SessionsLiveUntilTheyEndOrExpire":         testSessions,
		"Auth/AdvanceSessionLetsOneThrough":             testAdvanceOnce,
		"Auth/AdminWhoseDecisionIsGoneIsRefused":        testDecidedAdmin,
		"Auth/AdvanceSessionExtendsUpToTheCap":          testAdvance,
		"Auth/RefreshesStayOnRecordWhileQuick":          testRefreshes,
		"Auth/UserUnchangedNoticesAChange":              testUserUnchanged,
		"Auth/NoSessionOutlivesASuspension":             testSignInBesideSuspension,
		"Auth/TheThrottleCountsLikeItsModel":            testThrottleModel,
		"Auth/TheThrottleCountsManyAtOnce":              testThrottleAtOnce,
		"Auth/SweepIsBoundedAndLeavesWhatMatters":       testSweep,
		"Auth/ServiceKeysAreFoundByTheirHash":           testServiceKeys,
		"ServiceKeys/SessionLinksAreUsedOnce":           testSessionLinks,
		"Auth/ForgedServiceKeysAreRefused":              testForgedServiceKeys,
		"Auth/AUserWhoWasTamperedWithIsReset":           testResetUser,
		"Auth/DecisionsAreListedNewestFirst":            testDecisions,
		"Auth/FactorsAreOfTheirUser":                    testFactors,
		"Auth/IdentitiesAreOfOneIssuer":                 testIdentities,
		"Auth/ASignInComesBackOnce":                     testUsedSignIns,
		"Auth/WhoIsTakenOverHasNothingOfBefore":         testTakeOver,
		"Auth/NoSessionOutlivesItsIdentity":             testSignInBesideTakeOver,
		"Auth/SessionsAreListedWithWhereTheyAre":        testListedSessions,
		"Auth/UsersAreFoundByTheirEmail":                testFoundUsers,
		"Auth/AdminsAreCountedAtOnce":                   testAdminsAtOnce,
		"Auth/ImportedUsersAreMadeOnce":                 testImportedUsers,
		"Auth/UsersAreListedInPages":                    testListedUsers,
		"Auth/UsersWhoWereTamperedWithAreRefused":       testTamperedUsers,
		"Auth/TheDecoyIsReplaced":                       testPasswordDecoy,
		"Auth/DeletedUsersLeaveTheJournal":              testErasedUser,
		"Auth/MoneyIsSeenBeforeADeletion":               testHasMoney,
		"Auth/SalesBesideDeletionsCount":                testSalesBesideDeletions,
		"Mail/RowsAreReadAsTheyWereWritten":             testMails,
		"Mail/TokensAreReadAsTheyWereWritten":           testMailTokens,
		"Mail/OfManyUsesOfATokenOneSucceeds":            testMailTokenAtOnce,
		"Mail/AnAddressIsChangedAndUndone":              testEmailChange,
		"Mail/ForgedTokensAreRefused":                   testForgedMailTokens,
		"Mail/FormerAddressesAreReserved":               testReservedAddress,
		"Mail/ExpiredTokensAreSwept":                    testSweptMailTokens,
		"Mail/RequestsAreTakenOnce":                     testMailRequests,
		"Mail/DueMailsAreLeasedOnce":                    testMailLeases,
		"Payouts/AViewIsOneMoment":                      testView,
		"Payouts/AViewKnowsWhenReasonsBegan":            testViewTimes,
		"Bank/TheNewestAccountIsTheCurrentOne":          testBankAccounts,
		"Bank/ARejectionStandsAgainstAVerification":     testRejectedBankAccount,
		"Bank/VerificationsAreLeasedOnce":               testVerificationLeases,
		"Bank/ProgressIsCompareAndSet":                  testVerificationProgress,
		"Bank/JournalTellsOfAVerifiedAccount":           testHasVerifiedAccount,
		"Bank/AFormerAccountStaysFormer":                testFormerAccounts,
		"Bank/AccountsInReviewAreListed":                testAccountsInReview,
		"Ledger/EntriesAreReadFromTheNewest":            testEntries,
		"Ledger/FloorsHold":                             testFloors,
		"Ledger/ManyCallersSpendABalanceOnce":           testOverspending,
		"Event/EachIsNumberedOnce":                      testEvents,
		"Event/AResetMakesASellerOnce":                  testResetToSeller,
		"Event/ADecisionMakesASellerOnce":               testDecidedToSeller,
		"Event/FailedPayoutsAreMailed":                  testMailedEvents,
		"Event/ManyAreNumberedInTheOrderOfTheirJournal": testEventsAtOnce,
		"Webhook/EndpointsAreReadAsTheyWereWritten":     testWebhookEndpoints,
		"Webhook/ForgedEndpointsAreMarked":              testForgedWebhookEndpoints,
		"Webhook/EventsAreQueuedForThoseWhoWantThem":    testQueuedDeliveries,
		"Webhook/EndpointsAreLeasedOnce":                testWebhookLeases,
		"Webhook/AttemptsAreCompareAndSet":              testWebhookAttempts,
		"Webhook/DeliveriesAreListedNewestFirst":        testListedDeliveries,
		"Sale/IDsAreTakenOnce":                          testSaleIDs,
		"Sale/RefundsStayWithinTheSale":                 testRefundLimits,
		"Sale/DueSalesComeInOrderAndOnce":               testDueSales,
		"Sale/PagesAreNewestFirst":                      testSalePages,
		"Sale/MonthsAreReadInOrder":                     testMonths,
		"Sale/AdjustmentsAreListed":                     testAdjustments,
		"Sale/PendingIsSummedByDay":                     testPendingByDay,
		"Payout/ReferencesAreFound":                     testSearch,
		"Payout/WhatWaitsForAPersonIsListed":            testAttention,
		"Inbox/OneAdminIsOnATask":                       testClaims,
		"Search/WhateverIsNamed":                        testSearchAll,
		"Payout/Figures":                                testFigures,
		"Payout/ASumThatIsTooLargeIsBounded":            testUncountableSum,
		"Payout/OperatorsSelect":                        testSelections,
		"Payout/MovesAreCompareAndSet":                  testMoves,
		"Payout/DuePayoutsAreLeasedOnce":                testLeases,
		"Payout/NotificationsRescheduleOnlyWhatWasSent": testReschedule,
		"Payout/AJobRunsOnceInEveryPeriod":              testAllowRun,
		"Payout/KeysAreRemembered":                      testKeys,
		"Payout/HistoryIsPagedNewestFirst":              testHistory,
		"Payout/IDsSortAsBytes":                         testOrder,
		"Payout/SummaryIsOneView":                       testSummary,
		"Settings/TheFirstValueStays":                   testPins,
		"Settings/AFactIsChangedByWhoKnowsIt":           testRepin,
		"Settings/FactsAreReadByTheirBeginning":         testPinnedUnder,
		"Settings/NothingActsByItselfInTheDatabase":     testSchemaIsOurs,
		"Settings/TheKeySetIsReplacedByOneOfMany":       testKeySet,
		"Payout/RequestsAreServedOnce":                  testRequests,
		"Payout/ChangesInGroups":                        testChangesInGroups,
		"Payout/UnitsRememberEndsOfJournals":            testTails,
		"Payout/UnitsReadLongEndsAhead":                 testLongTails,
		"Payout/WhatWasWrittenIsMissed":                 testWrittenEnds,
		"Payout/AFailingRequestHarmsNobody":             testFailingRequests,
		"Payout/OfManyWithOneKeyOneGetsThrough":         testKeysAtOnce,
		"Isolation/WhatIsReadUnderALockStays":           testLockedReads,
		"Isolation/FirstRowsAreMadeOnce":                testFirstUse,
		"Isolation/AFailedStatementEndsTheClosure":      testFailedStatement,
		"Isolation/ATransactionOutlivesItsCaller":       testCallerWhoLeaves,
		"Isolation/BalancesAreLockedInOneOrder":         testReleasesBesideEverything,
		"Startup/TheNewestSentComesFirst":               testNewestSent,
		"Startup/WhatAGatewayHasTakenIsKnown":           testMayHaveTaken,
		"Startup/PayoutsAreFoundByIDs":                  testPayoutsByID,
		"Startup/APayoutIsImportedOnce":                 testImport,
		"Startup/UnmatchedTransfersAreStoredOnce":       testUnmatchedTransfers,
		"Payouts/AllArePausedAndResumed":                testPause,
		"Watch/LatePayoutsAreListed":                    testLate,
		"Watch/WhatNeedsLookingAfterIsSeen":             testWatch,
		"Stats/GroupsAreCounted":                        testGroupSizes,
		"Proof/CheckpointsHoldAllJournals":              testCheckpoints,
		"Proof/ACheckpointWithoutSomeTotals":            testCheckpointWithoutTotals,
		"Proof/OneMakesACheckpoint":                     testCheckpointLease,
		"Proof/NothingBrokenIsCheckpointed":             testNothingBrokenIsCheckpointed,
		"Reconcile/LinesAreStoredAsReported":            testStatementLines,
		"Reconcile/DaysAreReadWhole":                    testStatementDays,
		"Reconcile/TheClearingAccountIsReadByTime":      testClearingAccount,
		"Reconcile/DifferencesComeAndGo":                testDifferences,
		"Reconcile/OneReconciles":                       testReconcileTurns,
		"Audit/CleanLedgerIsClean":                      testCleanAudit,
		"Audit/EveryInvariantIsFound":                   testAuditFinds,
		"Audit/RowsBehindTheFirstPageAreRead":           testAuditPages,
		"Audit/HandsInTheDatabaseAreFound":              testTamperedRows,
		"Audit/OneRowHidesNothingElse":                  testOneRow,
		"Ledger/PostingsMoveTheTotals":                  testPostings,
		"Ledger/TotalsHaveALimit":                       testLargeAmounts,
		"Ledger/EntriesFollowOnEachOther":               testJournals,
		"Ledger/NothingIsAppendedWithoutKeys":           testWithoutKeys,
		"Ledger/EntriesAboutASubject":                   testEntriesAbout,
		"Ledger/ARestoredJournalIsReadAgain":            testRestoredJournal,
		"Startup/UnsentPayoutsAreListed":                testUnsent,
		"Proof/EveryChangeOfAnEntryIsFound":             testTampering,
		"Proof/WhatIsMadeUpIsInNoCheckpoint":            testMadeUp,
		"Tamper/EveryAttemptIsFoundAndRefused":          testAttempts,
		"Tamper/WithoutTheKeysNothingFits":              testForgeries,
		"Tamper/AnOldBalanceStopsItsJournal":            testOldBalance,
		"Tamper/ARowUnderANewIDStopsTheRequest":         testTakenID,
		"Repair/RowsBecomeWhatTheJournalSays":           testRepair,
		"Repair/ARefundMeanwhileStays":                  testRepairBesideRefund,
		"Repair/ACompletionMeanwhileStays":              testRepairBesideCompletion,
		"Repair/ABankAccountAddedMeanwhileStays":        testRepairBesideRegistration,
		"Repair/ItLocksInTheOrderOfOthers":              testRepairLockOrder,
		"Repair/WhatIsRightByThenIsLeftAlone":           testRepairOfRightRow,
		"Repair/ShownItWaitsForNoJournal":               testShownRepair,
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{T: t, engine: e, keys: Keys(t), db: e.Open(t), now: start}
			b.db.UseKeys(b.keys)
			test(t, b)
		})
	}
}

var start = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// bench is what a test works on: an open database and a moment.
type bench struct {
	*testing.T
	engine Engine
	keys   *keyset.Set
	db     *store.DB
	now    time.Time
	// served is how often changes of [bench.moveInUnit] were served.
	served int
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

// updates calls fn with 0 to times-1, in transactions that are short enough for a slow machine: the store
// ends one on PostgreSQL after ten seconds.
func (b *bench) updates(times int, fn func(tx *store.Tx, i int) error) {
	b.Helper()
	const each = 50
	for from := 0; from < times; from += each {
		b.update(func(tx *store.Tx) error {
			for i := from; i < min(from+each, times); i++ {
				if err := fn(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
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

// seller adds a seller with a verified bank account. Its journal has one entry then.
func (b *bench) seller(id string) string {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		if err := tx.InsertUser(b.ctx(), auth.User{
			ID: id, Name: "Asha", Email: id + "@example.com", Role: auth.Seller, CreatedAt: b.now,
		}); err != nil {
			return err
		}
		return b.addAccount(tx, bank.Account{
			ID: bank.ID("bka_" + id), Seller: id, Holder: "Asha Rao", IFSC: "HDFC0000053", Last4: "1234", Current: true,
			Status: bank.StatusVerified, NameScore: -1, VerificationID: "fav_" + id, CreatedAt: b.now, VerifiedAt: b.now,
		})
	})
	return id
}

// encrypted is a number for a bank account, as package bank encrypts it.
func (b *bench) encrypted(a bank.Account) string {
	b.Helper()
	number, err := b.keys.Encrypt("00001111"+a.Last4, "bank_accounts|encrypted_number|"+string(a.ID))
	b.must(err)
	return number
}

// addAccount adds a bank account as package bank does. A current one takes the place of the one before.
func (b *bench) addAccount(tx *store.Tx, a bank.Account) error {
	if a.EncryptedNumber == "" {
		a.EncryptedNumber = b.encrypted(a)
	}
	before, err := tx.CurrentBankAccount(b.ctx(), a.Seller)
	replaces := err == nil && a.Current
	if err != nil && !errors.Is(err, bank.ErrNone) {
		return err
	}
	inserted, err := tx.InsertBankAccount(b.ctx(), a)
	if err != nil || !inserted {
		return err
	}
	if replaces {
		former := before
		former.Current = false
		if err := b.record(tx, before, former); err != nil {
			return err
		}
	}
	return b.record(tx, bank.Account{ID: a.ID}, a)
}

// record appends what changes of a bank account.
func (b *bench) record(tx *store.Tx, was, is bank.Account) error {
	p, err := bank.Recorded(was, is, "user:"+is.Seller, b.now)
	if err == nil {
		_, err = tx.Append(b.ctx(), p)
	}
	return err
}

// post appends the entry that takes a row from what it was to what it is.
func post[R any](b *bench, tx ledger.Appender, owner string, t ledger.Type, subject string, was, is R, moved ledger.Moved, facts ...any) error {
	data, err := ledger.Patch(was, is, facts...)
	if err == nil {
		_, err = tx.Append(b.ctx(), ledger.Posting{Owner: owner, At: b.now, Type: t, Subject: subject, Actor: "system", Data: data, Moved: moved})
	}
	return err
}

// sell records a sale as package sale does.
func (b *bench) sell(id, seller string, amount money.Amount) {
	b.Helper()
	b.addSale(sale.Sale{
		ID: id, Seller: seller, Amount: amount, Month: "2026-11", OccurredAt: b.now, AvailableAt: b.now, CreatedAt: b.now,
		Fingerprint: fmt.Sprintf("%s %d - -", seller, amount),
	})
}

func (b *bench) addSale(s sale.Sale) {
	b.Helper()
	b.update(func(tx *store.Tx) error { return b.insertSale(tx, s) })
}

func (b *bench) insertSale(tx *store.Tx, s sale.Sale) error {
	inserted, err := tx.InsertSale(b.ctx(), s)
	if err != nil || !inserted {
		return err
	}
	if err := post(b, tx, s.Seller, ledger.SaleRecorded, sale.SubjectPrefix+s.ID, sale.Sale{ID: s.ID}, s, ledger.Sale(s.Amount)); err != nil {
		return err
	}
	return tx.AddEarnings(b.ctx(), s.Seller, s.Month, s.Amount)
}

// release makes a sale available as package sale does.
func (b *bench) release(id string) {
	b.Helper()
	b.update(func(tx *store.Tx) error {
		was, err := tx.SaleForUpdate(b.ctx(), id)
		if err != nil {
			return err
		}
		if _, err := tx.MarkReleased(b.ctx(), id, b.now); err != nil {
			return err
		}
		is := was
		is.ReleasedAt = b.now
		return post(b, tx, is.Seller, ledger.SaleReleased, sale.SubjectPrefix+id, was, is, ledger.ReleaseSale(was.Left()))
	})
}

// refund takes money back from a sale as package sale does.
func (b *bench) refund(saleID, id string, amount money.Amount) {
	b.Helper()
	b.update(func(tx *store.Tx) error { return b.refundIn(tx, saleID, id, amount) })
}

// refundIn is refund in a transaction.
func (b *bench) refundIn(tx *store.Tx, saleID, id string, amount money.Amount) error {
	was, err := tx.SaleForUpdate(b.ctx(), saleID)
	if err != nil {
		return err
	}
	r := sale.Refund{ID: id, Sale: saleID, Amount: amount, At: b.now, Fingerprint: fmt.Sprint(int64(amount))}
	if _, err := tx.AddRefunded(b.ctx(), saleID, amount); err != nil {
		return err
	}
	if err := tx.InsertRefund(b.ctx(), r); err != nil {
		return err
	}
	is := was
	is.Refunded += amount
	if err := post(b, tx, is.Seller, ledger.SaleRefunded, sale.SubjectPrefix+saleID, was, is, ledger.RefundSale(amount, was.Released()),
		"refundId", r.ID, "refund", r.Amount, "refundFingerprint", r.Fingerprint); err != nil {
		return err
	}
	return tx.AddEarnings(b.ctx(), is.Seller, is.Month, -amount)
}

// fund gives a seller an available balance.
func (b *bench) fund(seller string, amount money.Amount) {
	b.Helper()
	id := "sale for " + seller
	b.sell(id, seller, amount)
	b.release(id)
}

// ask reserves an amount for a payout as package payout does.
func (b *bench) ask(id payout.ID, seller string, amount, fee money.Amount) payout.Payout {
	b.Helper()
	p := payout.Payout{
		ID: id, Seller: seller, BankAccountID: bank.ID("bka_" + seller), Amount: amount, Fee: fee, Notes: "rent",
		State: payout.Waiting, Rail: "IMPS", Gateway: atGateway, RequestedAt: b.now, ArriveAt: b.now.Add(time.Hour), DueAt: b.now,
		AccountHolder: "Asha Rao", AccountLast4: "1234", AccountIFSC: "HDFC0000053",
	}
	b.update(func(tx *store.Tx) error {
		if err := post(b, tx, seller, ledger.PayoutRequested, string(id), payout.Payout{ID: id}, p, ledger.ReservePayout(amount)); err != nil {
			return err
		}
		return tx.InsertPayout(b.ctx(), p)
	})
	return p
}

// steps names the entry of a payout that comes to a state.
var steps = map[payout.State]ledger.Type{
	payout.Waiting: ledger.PayoutRequeued, payout.Submitting: ledger.PayoutSubmitting, payout.Unknown: ledger.PayoutUnknown,
	payout.ManualReview: ledger.PayoutReview, payout.Submitted: ledger.PayoutSubmitted, payout.Completed: ledger.PayoutCompleted,
	payout.Failed: ledger.PayoutFailed, payout.Returned: ledger.PayoutReturned, payout.Cancelled: ledger.PayoutCancelled,
}

// move saves a payout in another state, with the entry and the money that belong to it, as package payout does.
func (b *bench) move(p payout.Payout, to payout.State) payout.Payout {
	b.Helper()
	p.State = to
	b.update(func(tx *store.Tx) error { return b.moveIn(tx, p) })
	return p
}

// moveIn is move in a transaction, to the state that p has.
func (b *bench) moveIn(tx *store.Tx, p payout.Payout) error {
	was, err := tx.PayoutForUpdate(b.ctx(), p.ID)
	if err != nil {
		return err
	}
	moved, err := tx.UpdatePayout(b.ctx(), was.State, p)
	if err != nil {
		return err
	}
	if !moved {
		return fmt.Errorf("%s did not move from %s to %s", p.ID, was.State, p.State)
	}
	if _, differs := ledger.Differs(was, p); !differs {
		return nil
	}
	what, moves := steps[p.State], ledger.Moved{}
	switch {
	case was.State == p.State:
		what = ledger.PayoutUpdated
	case p.State == payout.Completed:
		moves = ledger.SettlePayout(p.Net(), p.Fee)
	case p.State == payout.Failed || p.State == payout.Cancelled:
		moves = ledger.ReleasePayout(p.Amount)
	case p.State == payout.Returned:
		moves = ledger.ReturnPayout(p.Net(), p.Fee)
	}
	return post(b, tx, p.Seller, what, string(p.ID), was, p, moves)
}

// complete takes a payout to its good end.
func (b *bench) complete(p payout.Payout) payout.Payout {
	b.Helper()
	p = b.move(p, payout.Submitting)
	p.GatewayID, p.UTR, p.CompletedAt, p.EndedAt, p.DueAt = "pout_"+string(p.ID[4:]), "HDFCN00000000001", b.now, b.now, time.Time{}
	return b.move(p, payout.Completed)
}
