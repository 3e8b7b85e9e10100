/** Tests that run, the innermost last. */
const domains: Domain[] = []

process.on('uncaughtException', (error, origin) => {
  const innermost = domains.at(-1)
  if (innermost) return innermost.onerror(error, origin)
  console.error(error)
  process.exit(1)
})

/**
 * What the runner's library takes for `Domain` of the package `async-hook-domain`: gives an error that no code catches
 * to the test that runs. The package follows every promise of the process to find the test that made it, for a third
 * of the CPU and the memory of promises until they are collected. Here tests run one after another, so that the
 * innermost one is meant.
 */
export class Domain {
  readonly #onError: (error: unknown, origin: string) => void

  constructor(onError: (error: unknown, origin: string) => void) {
    this.#onError = onError
    domains.push(this)
  }

  onerror(error: unknown, origin: string): void {
    this.#onError(error, origin)
  }

  destroy(): void {
    const index = domains.indexOf(this)
    if (index >= 0) domains.splice(index, 1)
  }
}
