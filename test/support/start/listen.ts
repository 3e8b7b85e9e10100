import type { AddressInfo, Server } from 'node:net'
import type { Test } from 'tap'

/** Has a server listen on a free loopback port until the end of the test. @returns its origin. */
export async function listen(
  t: Test,
  server: Server & { closeAllConnections?(): void },
): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(
    () =>
      new Promise(resolve => {
        server.close(resolve)
        server.closeAllConnections?.()
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
