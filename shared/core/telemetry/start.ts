import type { Config } from '#shared/core/config.ts'
import type { Telemetry } from '#shared/core/telemetry/sdk.ts'

/**
 * Starts the OpenTelemetry SDK where the environment names an OTLP endpoint. Its packages, 40 MB on disk, are loaded
 * only then.
 *
 * @param role the process: its resource attribute `memory_vault.process`
 * @returns null without an endpoint
 */
export async function startTelemetry(
  signals: Config['telemetry'],
  role: 'web' | 'worker',
): Promise<Telemetry | null> {
  if (signals === null) return null
  const { startSdk } = await import('#shared/core/telemetry/sdk.ts')
  return startSdk(signals, role)
}
