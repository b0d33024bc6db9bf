package main

import (
	"github.com/spf13/cobra"

	"github.com/queuehook/queuehook/admin"
	"github.com/queuehook/queuehook/config"
)

func newHealth() *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Ask the dispatcher on this host whether it is alive",
		Long: `Ask the dispatcher that listens on DISPATCHER_ADMIN_ADDR of this host whether its
loops make progress. The exit status is 0 when they do, and when that address is
empty. It is meant for a container's health check, and asks neither whether Redis is
there nor whether the routes file and other settings are good.`,
		Example: `  dispatcher health
  HEALTHCHECK CMD ["dispatcher", "health"]`,
		GroupID: groupServe, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			addr, err := config.LoadAdminAddr()
			if err != nil {
				return err
			}
			return admin.Check(cmd.Context(), addr)
		},
	}
}
