import { lazy, Suspense } from "react";
import { Link, Route, Routes } from "react-router";

import { useSession } from "./api/session";
import { Empty } from "./components/Empty";
import { Header } from "./components/Header";
import { SignIn } from "./components/SignIn";
import { BestPage } from "./pages/BestPage";
import { JobsPage } from "./pages/JobsPage";
import { SubmitPage } from "./pages/SubmitPage";

const ComparePage = lazy(() => import("./pages/ComparePage"));
const JobPage = lazy(() => import("./pages/JobPage"));
const ModelsPage = lazy(() => import("./pages/ModelsPage"));
const TrialPage = lazy(() => import("./pages/TrialPage"));
const WorkersPage = lazy(() => import("./pages/WorkersPage"));

export function App() {
  const { wants } = useSession();
  return (
    <>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <Header />
      <main id="content">
        {wants && <SignIn isAnew={wants === "another"} />}
        {/* Kept beneath, with what was written there. */}
        <div hidden={wants !== null}>
          <Suspense fallback={<p className="quiet">Loading…</p>}>
            <Routes>
              <Route path="/" element={<JobsPage />} />
              <Route path="/jobs/:id" element={<JobPage />} />
              <Route path="/jobs/:id/trials/:number" element={<TrialPage />} />
              <Route path="/compare" element={<ComparePage />} />
              <Route path="/best" element={<BestPage />} />
              <Route path="/models" element={<ModelsPage />} />
              <Route path="/workers" element={<WorkersPage />} />
              <Route path="/submit" element={<SubmitPage />} />
              <Route path="*" element={<Nowhere />} />
            </Routes>
          </Suspense>
        </div>
      </main>
    </>
  );
}

function Nowhere() {
  return (
    <>
      <h1>There is no such page</h1>
      <Empty title="Nothing is at this address">
        <p>It may have been mistyped, or be of another version.</p>
        <Link className="button main" to="/">
          See the jobs
        </Link>
      </Empty>
    </>
  );
}
