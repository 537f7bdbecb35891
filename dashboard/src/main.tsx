import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter } from "react-router";

import { ApiError } from "./api/client";
import { App } from "./App";
import { applyTheme } from "./components/theme";
import "./theme.css";
import "./parts.css";

// What the service refuses will be refused again; what it did not answer, or could not, is asked again.
const TOO_MANY = 429;
const isLasting = (error: Error) =>
  error instanceof ApiError && error.problem.status < 500 && error.problem.status !== TOO_MANY;
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => !isLasting(error) && count < 3,
      staleTime: 1000,
    },
  },
});

applyTheme();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <BrowserRouter>
          <App />
        </BrowserRouter>
      </QueryClientProvider>
    </StrictMode>,
  );
}
