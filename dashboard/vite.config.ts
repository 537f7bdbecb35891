import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The service serves what is built from its own package; `npm run dev` talks to one that runs.
export default defineConfig({
  plugins: [react()],
  build: { outDir: "../service/dashboard", emptyOutDir: true, assetsInlineLimit: 0 },
  server: { proxy: { "/api": "http://127.0.0.1:8080" } },
});
