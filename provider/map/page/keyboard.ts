/** What the lists ask of the page. */
interface Commands {
  readonly state: () => Shown;
  /** Chooses the line, and opens or closes it where it is a group. */
  readonly choose: (row: Row) => void;
  readonly toggle: (row: Row) => void;
  /** Chooses nothing any more. */
  readonly clear: () => void;
}

/** The keys of the tree pattern (WAI-ARIA practices); those that have no use there go over to the other list. */
function listen(side: Side, commands: Commands): void {
  const list = lists[side];
  list.addEventListener("click", (event) => {
    const row = rowOf(event);
    if (!row) return;
    commands.choose(row);
    focusLine(row);
  });
  list.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const row = rowOf(event);
    const act = row && ACTIONS[event.key];
    if (!act) return;
    event.preventDefault();
    act(row, commands);
  });
}

type Action = (row: Row, commands: Commands) => void;

const ACTIONS: Readonly<Record<string, Action>> = {
  ArrowDown: (row, { state }) => focusLine(near(state(), row, 1)),
  ArrowUp: (row, { state }) => focusLine(near(state(), row, -1)),
  Home: ({ side }, { state }) => focusLine(state().rows[side][0]),
  End: ({ side }, { state }) => focusLine(state().rows[side].at(-1)),
  Enter: (row, { choose }) => choose(row),
  " ": (row, { choose }) => choose(row),
  Escape: (_, { clear }) => clear(),
  ArrowRight: (row, commands) => {
    const { side, kind, open } = row;
    if (kind === "group" && !open) commands.toggle(row);
    else if (kind === "group") focusLine(near(commands.state(), row, 1));
    else if (side === "keys") focusLine(firstConnected(commands.state(), row));
  },
  ArrowLeft: (row, commands) => {
    const { side, kind, open, level } = row;
    if (kind === "group" && open) commands.toggle(row);
    else if (level === 2) focusLine(groupOf(commands.state(), row));
    else if (side === "devices") focusLine(firstConnected(commands.state(), row));
  },
};

function near({ rows }: Shown, { side, id }: Row, step: number): Row | undefined {
  return rows[side][rows[side].findIndex((row) => row.id === id) + step];
}

function groupOf({ rows }: Shown, { side, id }: Row): Row | undefined {
  const list = rows[side];
  return list
    .slice(
      0,
      list.findIndex((row) => row.id === id),
    )
    .findLast(({ level }) => level === 1);
}

function firstConnected(state: Shown, { side, id }: Row): Row | undefined {
  const place = state.rows[side].findIndex((row) => row.id === id);
  return state.rows[otherSide(side)].find((_, other) => bitsAt(state, side, place, other) !== 0);
}
