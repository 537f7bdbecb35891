/** Time windows of jobs: whether one is open, and in how many minutes it opens. */

export interface WindowState {
  isOpen: boolean;
  /** Minutes until it opens, by the clock of today; 0 if it is open. */
  minutesToOpen: number;
}

const FORM = /^(\d\d):(\d\d)-(\d\d):(\d\d) (\S+)$/;
const DAY = 24 * 60;

/** The state of a window, such as `22:00-06:00 Europe/Berlin`; null if this browser lacks its zone. */
export function windowState(text: string, now: Date): WindowState | null {
  const match = FORM.exec(text);
  if (!match) return null;
  const [opens, closes] = [minutes(match[1], match[2]), minutes(match[3], match[4])];
  const clock = clockIn(match[5] ?? "UTC", now);
  if (clock === null) return null;
  const isOpen =
    opens < closes ? opens <= clock && clock < closes : clock >= opens || clock < closes;
  return { isOpen, minutesToOpen: isOpen ? 0 : (opens - clock + DAY) % DAY };
}

function minutes(hours: string | undefined, rest: string | undefined): number {
  return 60 * Number(hours) + Number(rest);
}

function clockIn(timeZone: string, now: Date): number | null {
  try {
    const parts = new Intl.DateTimeFormat("en-GB", {
      timeZone,
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    }).formatToParts(now);
    const value = (type: string) => parts.find((part) => part.type === type)?.value;
    return minutes(value("hour"), value("minute"));
  } catch {
    return null; // an unknown time zone is a RangeError
  }
}
