// Package e2e tests the built programs as their users run them: processes with an environment, a real Redis, a scripted
// receiver, signals. Each test ends with the law: nothing lost, nothing doubled without a cause.
//
// Longer variants run with QUEUEHOOK_LONG=1.
package e2e
