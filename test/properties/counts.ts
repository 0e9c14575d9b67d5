/** Says at the end how many scenarios the property tests have played. */
import type { Reporter, TestModule } from "vitest/node";

export default class ScenarioCounts implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = new Map<string, Map<string, number>>();
    for (const { project, children } of modules) {
      const of = counts.get(project.name) ?? new Map<string, number>();
      counts.set(project.name, of);
      for (const test of children.allTests())
        for (const [name, played] of Object.entries(test.meta().scenarios ?? {})) of.set(name, (of.get(name) ?? 0) + played);
    }
    for (const [project, of] of counts) {
      if (of.size === 0) continue;
      const total = [...of.values()].reduce((sum, played) => sum + played, 0);
      console.info(`${project}: ${total} scenarios played: ${[...of].map(([name, played]) => `${played} of ${name}`).join(", ")}`);
    }
  }
}
