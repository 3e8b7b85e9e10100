import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** The real collector: that of `OTELCOL`, of the path, or where Go installs programs. */
export function findCollector(): string | undefined {
  const places = [process.env.OTELCOL, 'otelcol', join(homedir(), 'go/bin/otelcol')]
  return places.find(place => place && spawnSync(place, ['components']).error === undefined)
}

export const noCollector =
  'no OpenTelemetry Collector is installed: test/support/start/otel-collector.yaml says how to build it'

/** Starts a collector on loopback that passes everything on to an address, as JSON. */
export async function startCollector(
  t: Test,
  program: string,
  to: string,
): Promise<{ http: string; grpc: string }> {
  const [http, grpc] = [await findFreeAddress(), await findFreeAddress()]
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: http }, grpc: { endpoint: grpc } } } },
    exporters: { otlp_http: { endpoint: to, encoding: 'json', compression: 'none' } },
    service: {
      // Its own metrics would take a port of the machine.
      telemetry: { metrics: { level: 'none' } },
      pipelines: Object.fromEntries(
        ['traces', 'metrics', 'logs'].map(signal => [
          signal,
          { receivers: ['otlp'], exporters: ['otlp_http'] },
        ]),
      ),
    },
  }
  const child = spawn(program, ['--config', `yaml:${JSON.stringify(config)}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await waitUntil('the collector is ready', () => {
    if (child.exitCode !== null) throw new Error(output)
    return output.includes('Everything is ready')
  })
  return { http: `http://${http}`, grpc: `http://${grpc}` }
}

async function findFreeAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `127.0.0.1:${port}`
}
