/** Lines that the table has at first, and that each press of the button adds. */
const PAGE = 100;

let listedLines = PAGE;
const HEADS = ["Change", "Person", "Key", "Login", "Devices", "From", "Rule and reason"];

/** The whole view as a table: the same as the picture, for those who do not see it, and for paper. */
function drawList({ view }: Shown, lines = PAGE): void {
  listedLines = lines;
  const edges = inOrder(view.edges);
  const rows = edges.slice(0, lines).map(({ edge, devices }) => {
    const key = data.keys[edge.key];
    const cells = [
      changeCell(edge.change),
      cell(key?.owner === undefined ? "not known" : shown(key.owner)),
      cell(keyName(edge.key)),
      cell(listed(edge.logins)),
      cell(devicesInWords(devices)),
      cell(addressesOf(edge)),
      cell(reasonOf(edge)),
    ];
    return { cells };
  });
  const caption = `${Math.min(lines, edges.length).toLocaleString("en")} of ${plural(edges.length, "line")}`;
  byId("list-body").replaceChildren(
    edges.length > 0 ? tableOf(caption, HEADS, rows) : made("p", { text: "Nothing to show." }),
  );
  byId("list-more").hidden = edges.length <= lines;
}
