import { lazy, Suspense, useState } from "react";
import { Link, NavLink, Route, Routes } from "react-router";

import { chooseTheme, chosenTheme, type Theme } from "./components/theme";
import { BestPage } from "./pages/BestPage";
import { JobsPage } from "./pages/JobsPage";
import { ModelsPage } from "./pages/ModelsPage";
import { SubmitPage } from "./pages/SubmitPage";
import { WorkersPage } from "./pages/WorkersPage";

const JobPage = lazy(() => import("./pages/JobPage"));
const TrialPage = lazy(() => import("./pages/TrialPage"));

const PLACES = [
  ["/", "Jobs"],
  ["/best", "Best schedules"],
  ["/models", "Cost model"],
  ["/workers", "Workers"],
] as const;

export function App() {
  return (
    <>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <header className="bar">
        <Link className="brand" to="/">
          <img src="/icon.svg" alt="" width="22" height="22" /> Loopwright
        </Link>
        <nav aria-label="Pages">
          {PLACES.map(([path, name]) => (
            <NavLink key={path} to={path} end={path === "/"}>
              {name}
            </NavLink>
          ))}
        </nav>
        <span className="push row">
          <ThemeChoice />
          <Link to="/submit">New job</Link>
        </span>
      </header>
      <main id="content">
        <Suspense fallback={<p className="quiet">Loading…</p>}>
          <Routes>
            <Route path="/" element={<JobsPage />} />
            <Route path="/jobs/:id" element={<JobPage />} />
            <Route path="/jobs/:id/trials/:number" element={<TrialPage />} />
            <Route path="/best" element={<BestPage />} />
            <Route path="/models" element={<ModelsPage />} />
            <Route path="/workers" element={<WorkersPage />} />
            <Route path="/submit" element={<SubmitPage />} />
            <Route path="*" element={<Nowhere />} />
          </Routes>
        </Suspense>
      </main>
    </>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState(chosenTheme());
  return (
    <select
      aria-label="Theme"
      value={theme}
      onChange={(event) => {
        chooseTheme(event.target.value as Theme);
        setTheme(event.target.value as Theme);
      }}
    >
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}

function Nowhere() {
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        <Link to="/">See the jobs</Link>, or <Link to="/submit">start one</Link>.
      </p>
    </>
  );
}
