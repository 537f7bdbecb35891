import { lazy, Suspense } from "react";
import { Route, Routes } from "react-router";

import { useSession } from "./api/session";
import { Loading } from "./components/Answer";
import { ConnectionNotice } from "./components/ConnectionNotice";
import { Header } from "./components/Header";
import { NotFound } from "./components/NotFound";
import { SignIn } from "./components/SignIn";
import { JobsPage } from "./pages/JobsPage";
import { SubmitPage } from "./pages/SubmitPage";

const BestPage = lazy(() => import("./pages/BestPage"));
const ComparePage = lazy(() => import("./pages/ComparePage"));
const JobPage = lazy(() => import("./pages/JobPage"));
const CostModelPage = lazy(() => import("./pages/CostModelPage"));
const ModelPage = lazy(() => import("./pages/ModelPage"));
const ModelsPage = lazy(() => import("./pages/ModelsPage"));
const ShapesListPage = lazy(() => import("./pages/ShapesListPage"));
const ShapesPage = lazy(() => import("./pages/ShapesPage"));
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
        <ConnectionNotice />
        {wants && <SignIn isAnew={wants === "another"} />}
        {/* Kept beneath, with what was written there. */}
        <div hidden={wants !== null}>
          <Suspense fallback={<Loading />}>
            <Routes>
              <Route path="/" element={<JobsPage />} />
              <Route path="/jobs/:id" element={<JobPage />} />
              <Route path="/jobs/:id/trials/:number" element={<TrialPage />} />
              <Route path="/compare" element={<ComparePage />} />
              <Route path="/best" element={<BestPage />} />
              <Route path="/models" element={<ModelsPage />} />
              <Route path="/models/:id" element={<ModelPage />} />
              <Route path="/shapes" element={<ShapesListPage />} />
              <Route path="/shapes/:id" element={<ShapesPage />} />
              <Route path="/cost-models" element={<CostModelPage />} />
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
    <NotFound title="Page not found">
      No page has this address. Check it for a typing error.
    </NotFound>
  );
}
