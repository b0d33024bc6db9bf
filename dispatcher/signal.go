package dispatcher

import "context"

// signal is something that happens once, and then stays so.
type signal struct {
	ctx  context.Context //nolint:containedctx // it is the signal, no call's context
	give context.CancelFunc
}

func newSignal() signal {
	ctx, give := context.WithCancel(context.Background())
	return signal{ctx: ctx, give: give}
}

func (s signal) given() <-chan struct{} { return s.ctx.Done() }

// until is ctx, ended by the signal too.
func until(ctx context.Context, s signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unbind := context.AfterFunc(s.ctx, cancel)
	return ctx, func() {
		unbind()
		cancel()
	}
}
