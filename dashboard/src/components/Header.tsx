import { Link, NavLink } from "react-router";

import { keepToken, token } from "../api/client";
import { ThemeSwitch } from "./ThemeSwitch";

const PLACES = [
  ["/", "Jobs"],
  ["/best", "Best schedules"],
  ["/models", "Cost model"],
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

/** Forgets the token that this browser keeps, if it has one. */
function SignOut() {
  if (!token()) return null;
  return (
    <button
      type="button"
      onClick={() => {
        keepToken("");
        location.reload();
      }}
    >
      Sign out
    </button>
  );
}
