// Writes the pages of the site from the Markdown files of the repository: adds the front matter that the site generator
// needs, and converts links between files to links between pages.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { SECTIONS } from "./structure.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGES = fileURLToPath(new URL("src/content/docs/", import.meta.url));
const IMAGES = "docs/images/";
/** The start page. It contains its own front matter, and the words that {@link startPage} replaces. */
const START = "docs/site/start.md";

/** A page of the site. */
interface SitePage {
  /** Path of the Markdown file in the repository. */
  readonly file: string;
  /** Path of the page below the address of the site, such as `guides/review`. */
  readonly slug: string;
  readonly title: string;
  readonly body: string;
}

const filesIn = (path: string): string[] =>
  path.endsWith("/")
    ? readdirSync(join(ROOT, path), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".md"))
        .map((name) => posix.join(path, name))
        // The page of a folder comes before the other pages of this folder.
        .sort((left, right) => (slugOf(left) < slugOf(right) ? -1 : 1))
    : [path];

const slugOf = (file: string): string =>
  file
    .replace(/^docs\//, "")
    .replace(/(\/README|\/index)?\.md$/, "")
    .toLowerCase();

/** Reads a page. The title is the first heading. @throws Error the file does not exist, or has no heading */
function readPage(file: string): SitePage {
  const text = readFileSync(join(ROOT, file), "utf8").replace(/^---\n.*?\n---\n/s, "");
  const [heading = "", title] = /^# (.+)\n/m.exec(text) ?? [];
  if (title === undefined) throw new Error(`${file}: the first heading is missing`);
  return { file, slug: slugOf(file), title: title.replaceAll("`", ""), body: text.replace(heading, "") };
}

const sections = () =>
  SECTIONS.map(([title, paths]) => [title, paths.flatMap(filesIn).map(readPage)] as const);

/** Returns the navigation of the site. */
export const sidebar = () =>
  sections().map(([label, pages]) => ({
    label,
    collapsed: pages.length > 5,
    items: pages.map(({ title, slug }) => ({ label: title, slug })),
  }));

/**
 * Writes all pages and pictures.
 * @throws Error a Markdown file of `docs` is in no section, or a link leads to a file that does not exist
 */
export function writeContent(): void {
  const pages = sections().flatMap(([, all]) => all);
  const listed = new Set(pages.map(({ file }) => file));
  const unlisted = filesIn("docs/").filter((file) => !listed.has(file) && !file.startsWith("docs/site/"));
  if (unlisted.length > 0) throw new Error(`docs/site/structure.ts does not list ${unlisted.join(", ")}`);
  rmSync(PAGES, { recursive: true, force: true });
  const slugs = new Map([["README.md", ""], ...pages.map(({ file, slug }) => [file, slug] as const)]);
  const start = { file: START, slug: "", body: startPage() };
  for (const page of pages) {
    const target = join(PAGES, `${page.slug}.md`);
    mkdirSync(dirname(target), { recursive: true });
    // Wide tables need the space of the table of contents.
    const isWide = /^(\|[ :]*-+[ :]*){5,}\|$/m.test(page.body) || !/^## /m.test(page.body);
    const contents = isWide ? "tableOfContents: false\n" : "";
    const frontMatter = `---\ntitle: ${JSON.stringify(page.title)}\n${contents}---\n`;
    writeFileSync(target, frontMatter + withPageLinks(page, slugs));
  }
  cpSync(join(ROOT, IMAGES), join(PAGES, "images"), { recursive: true });
  writeFileSync(join(PAGES, "index.md"), withPageLinks(start, slugs));
}

/** Returns the start page, with the version and the repository of the root's package.json. */
function startPage(): string {
  const { version, repository } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    readonly version: string;
    readonly repository?: { readonly url: string };
  };
  const address = repository?.url.replace(/^git\+|\.git$/g, "");
  return readFileSync(join(ROOT, START), "utf8")
    .replace("VERSION", version)
    .replace(
      "INSTALLATION",
      address === undefined
        ? "The packages are not published yet: the [quick start](../get-started/quick-start.md#install) installs them from a clone\nof the repository."
        : "The [quick start](../get-started/quick-start.md) continues from here.",
    )
    .replace(
      "REPOSITORY",
      address === undefined ? "The repository has no public address yet." : `The source is at <${address}>.`,
    );
}

/**
 * Converts the links of a page. A link to a file that is no page, such as a program, becomes its text, because the site
 * does not contain this file.
 */
function withPageLinks(
  { file, slug, body }: Omit<SitePage, "title">,
  slugs: ReadonlyMap<string, string>,
): string {
  // Odd parts are code blocks, which contain no links.
  return body
    .split(/(^ *```.*?^ *```$)/ms)
    .map((part, index) =>
      index % 2 === 1 ? part : part.replaceAll(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, converted),
    )
    .join("");

  function converted(link: string, picture: string, text: string, target: string): string {
    if (/^([a-z]+:|#)/.test(target)) return link;
    const [path = "", anchor = ""] = target.split(/(?=#)/);
    const found = posix.join(dirname(file), path).replace(/\/$/, "");
    if (!existsSync(join(ROOT, found))) throw new Error(`${file}: the link ${target} leads to no file`);
    if (picture)
      return `![${text}](${posix.relative(dirname(slug), `images/${posix.relative(IMAGES, found)}`)})`;
    const page = slugs.get(found) ?? slugs.get(`${found}/README.md`) ?? slugs.get(`${found}/index.md`);
    // Pages have addresses such as guides/review/, so each link starts one level higher.
    return page === undefined ? text : `[${text}](${posix.relative(slug, page)}/${anchor})`;
  }
}

if (process.argv[1] === import.meta.filename) writeContent();
