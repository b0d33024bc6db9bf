// Package chaos breaks everything that a running fleet depends on, by a plan that a seed decides, and then checks the
// law: nothing lost, nothing doubled without a cause on record.
//
// A trial has three built dispatchers, each with its janitor and with its own fault proxy before Redis, producers that
// never stop, a receiver, and now and then a run of the janitor program. [Plan] says what goes wrong when, [Run] does
// it. The other tests go through the kinds of Redis that users have, and through single faults, one by one.
package chaos
