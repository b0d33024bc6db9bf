package heartbeat

import (
	_ "embed" // the scripts

	"github.com/queuehook/queuehook/internal/script"
)

var (
	//go:embed lua/register.lua
	registerSource string
	//go:embed lua/beat.lua
	beatSource string
	//go:embed lua/deregister.lua
	deregisterSource string
	//go:embed lua/detect.lua
	detectSource string
)

// The transitions, each described at the head of its file.
var (
	registerScript   = script.New(registerSource)
	beatScript       = script.New(beatSource)
	deregisterScript = script.New(deregisterSource)
	detectScript     = script.New(detectSource)
)
