/**
 * Adds the heading of its column to each cell of a table, as `data-label`. On a phone, the style sheet shows each row as
 * a list of labels and values. A plugin for the syntax tree of HTML of the Markdown processor.
 */
export const tableLabels = {
  name: "table-labels",
  element: {
    filter: ["table"],
    visit(table, context) {
      const isElement = ({ type }) => type === "element";
      const rows = table.children
        .filter(isElement)
        .flatMap((part) => part.children.filter(isElement))
        .map((row) => row.children.filter(isElement));
      const labels = rows[0]?.map((cell) => context.textContent(cell)) ?? [];
      for (const cells of rows.slice(1))
        for (const [index, cell] of cells.entries())
          context.setProperty(cell, "data-label", labels[index] ?? "");
    },
  },
};
