import { createBenchEnvironment, log } from '#scripts/lab/bench/bench-environment.ts'
import { openBackend, type Backend } from '#shared/backend.ts'
import { readConfig, type Config } from '#shared/core/config.ts'

/** A service of the bench whose stores were started, with no process of it running. */
export type BenchService = { env: Record<string, string>; config: Config; backend: Backend }

/** New databases, and a backend on them for this process. */
export async function openBenchService(extra: Record<string, string> = {}): Promise<BenchService> {
  const env = await createBenchEnvironment(extra)
  const config = readConfig(env)
  return { env, config, backend: await openBackend(config, log, 'web') }
}
