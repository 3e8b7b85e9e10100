import { environmentReader, readProviders } from '#shared/core/read-providers.ts'
import type { Providers } from '#shared/core/provider-registry.ts'

/** The providers of an environment. */
export function providersOf(env: Record<string, string>): Providers {
  const faults: string[] = []
  const providers = readProviders(environmentReader(env, faults), faults)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return providers
}
