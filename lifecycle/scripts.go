package lifecycle

import (
	_ "embed" // the scripts

	"github.com/queuehook/queuehook/internal/script"
)

var (
	//go:embed lua/lease.lua
	leaseSource string
	//go:embed lua/complete.lua
	completeSource string
	//go:embed lua/abandon.lua
	abandonSource string
	//go:embed lua/bury.lua
	burySource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/adopt.lua
	adoptSource string
	//go:embed lua/sweep.lua
	sweepSource string
	//go:embed lua/enqueue.lua
	enqueueSource string
	//go:embed lua/redrive.lua
	redriveSource string
	//go:embed lua/purge.lua
	purgeSource string
	//go:embed lua/trim.lua
	trimSource string
	//go:embed lua/orphan.lua
	orphanSource string
	//go:embed lua/mend.lua
	mendSource string
	//go:embed lua/legacy.lua
	legacySource string
	//go:embed lua/pause.lua
	pauseSource string
	//go:embed lua/names.lua
	namesSource string
	//go:embed lua/head.lua
	headSource string
)

// The transitions, each described at the head of its file.
var (
	leaseScript    = script.New(leaseSource)
	completeScript = script.New(completeSource)
	abandonScript  = script.New(abandonSource)
	buryScript     = script.New(burySource)
	releaseScript  = script.New(releaseSource)
	adoptScript    = script.New(adoptSource)
	sweepScript    = script.New(sweepSource)
	enqueueScript  = script.New(enqueueSource)
	redriveScript  = script.New(redriveSource)
	purgeScript    = script.New(purgeSource)
	trimScript     = script.New(trimSource)
	orphanScript   = script.New(orphanSource)
	mendScript     = script.New(mendSource)
	legacyScript   = script.New(legacySource)
)

// Those that move nothing.
var (
	pauseScript = script.New(pauseSource)
	headScript  = script.New(headSource)
	namesScript = script.New(namesSource)
)
