// Measures one task, given as JSON in its argument, and writes what it found as JSON. Started by measure.ts.
import type { Measured, Task, Timed } from "./measure.ts";
import { OPERATIONS, type Operation, type OperationName, type Subject, subjectOf } from "./operations.ts";
import { tripleLoop } from "./tripleLoop.ts";

const megabytes = (bytes: number) => Math.round(bytes / 1e6);
const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

let heap = 0;

function time(name: OperationName, subject: Subject, rounds: number): Timed {
  const { run, questions }: Operation = OPERATIONS[name];
  const walls: number[] = [];
  const cores: number[] = [];
  let outcome = "";
  for (let round = 0; round < rounds; round += 1) {
    const [cpu, started] = [process.cpuUsage(), performance.now()];
    outcome = run(subject);
    walls.push((performance.now() - started) / questions);
    const { user, system } = process.cpuUsage(cpu);
    cores.push((user + system) / 1000 / questions);
    const { heapUsed, external } = process.memoryUsage();
    heap = Math.max(heap, heapUsed + external);
  }
  return { operation: name, first: walls[0] ?? 0, median: median(walls), core: median(cores), outcome };
}

const task = JSON.parse(process.argv[2] ?? "") as Task;
const subject = subjectOf(task.size);
const policyMegabytes = megabytes(process.memoryUsage.rss());
const timed = task.operations.map((name) => time(name, subject, task.rounds));
const measured: Measured = {
  timed,
  tripleLoop: task.tripleLoop ? tripleLoop(subject) : undefined,
  policyMegabytes,
  // Given in kibibytes.
  megabytes: megabytes(process.resourceUsage().maxRSS * 1024),
  heapMegabytes: megabytes(heap),
};
process.stdout.write(JSON.stringify(measured));
