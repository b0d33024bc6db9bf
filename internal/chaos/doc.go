// Package chaos breaks everything that a running fleet depends on, by a plan that a seed decides, and then asks for the
// law: nothing lost, nothing doubled without a cause on record.
//
// A trial is three built dispatchers, each with its janitor and with a fault proxy of its own before Redis, producers that
// never stop, a receiver, and now and then a janitor's run of its own. [Plan] says what goes wrong when, [Run] does it.
// The tests beside it take the kinds of Redis that users have, and single faults, one by one.
package chaos
