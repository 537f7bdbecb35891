import { Link, NavLink } from "react-router";

import { useCaller } from "../api/queries";
import { signOut, useSession } from "../api/session";
import { ThemeSwitch } from "./ThemeSwitch";

const PLACES = [
  ["/", "Jobs"],
  ["/best", "Best schedules"],
  ["/models", "Models"],
  ["/shapes", "Ranges"],
  ["/cost-models", "Cost model"],
  ["/workers", "Workers"],
] as const;

/** The bar on top of every page. */
export function Header() {
  return (
    <header className="bar">
      <Link className="brand" to="/">
        <img src="/icon.svg" alt="" width="24" height="24" /> Loopwright
      </Link>
      <nav aria-label="Pages">
        {PLACES.map(([path, name]) => (
          <NavLink key={path} to={path} end={path === "/"}>
            {name}
          </NavLink>
        ))}
      </nav>
      <span className="push row">
        <SignOut />
        <ThemeSwitch />
        <Link className="button main" to="/submit">
          New job
        </Link>
      </span>
    </header>
  );
}

/** Who is signed in, and the way out; nothing where no token is kept. */
function SignOut() {
  const { token } = useSession();
  const { name, scope } = useCaller();
  if (!token) return null;
  return (
    <>
      {name && (
        <span className="quiet small wide">
          {name} ({scope})
        </span>
      )}
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </>
  );
}
