package admin

// CloseListener breaks the listener as a fault of the system would.
func (s *Server) CloseListener() { _ = s.listener.Close() }
