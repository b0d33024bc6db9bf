package dispatcher_test

import (
	"os"
	"testing"

	"github.com/queuehook/queuehook/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
