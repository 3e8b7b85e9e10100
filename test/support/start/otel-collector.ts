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

/**
 * Starts a collector on loopback that passes everything on to an address, as JSON.
 *
 * @param options an address of OTLP over HTTP that it had before; without a queue it answers what the address has answered
 */
export async function startCollector(
  t: Test,
  program: string,
  to: string,
  options: { http?: string; queue?: boolean } = {},
): Promise<{ http: string; grpc: string; stop(): Promise<void> }> {
  const http = options.http?.replace('http://', '') ?? (await findFreeAddress())
  const grpc = await findFreeAddress()
  const sending_queue = { enabled: options.queue !== false }
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: http }, grpc: { endpoint: grpc } } } },
    exporters: {
      otlp_http: { endpoint: to, encoding: 'json', compression: 'none', sending_queue },
    },
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
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  t.teardown(stop)
  await waitUntil('the collector is ready', () => {
    if (child.exitCode !== null) throw new Error(output)
    return output.includes('Everything is ready')
  })
  return { http: `http://${http}`, grpc: `http://${grpc}`, stop }
}

export async function findFreeAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `127.0.0.1:${port}`
}
