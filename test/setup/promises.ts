import { writeFileSync } from 'node:fs'
import { listPromises, type Touched } from '#test/support/checks/promises.ts'

/** What no quick test can touch, and why. */
const untouchable: Record<string, string> = {
  'DELETE /v1/operations/:id 202':
    'told when a file has not stopped within the 25 s that a request waits',
  'POST /v1/memory/files body.file': 'the body is the file itself, in which no field is named',
}

/** The promises of the contract, and the tests of a run that touch them. */
export class PromiseList {
  readonly #tests = new Map([...listPromises()].map(promise => [promise, new Set<string>()]))

  add(touched: Touched): void {
    for (const [promise, tests] of Object.entries(touched)) {
      for (const test of tests) this.#tests.get(promise)?.add(test)
    }
  }

  /** Successful statuses and fields of bodies that no test has touched, without those with a reason. */
  missing(): string[] {
    return this.#untouched().filter(
      promise => / (?:2\d\d|body\..*)$/.test(promise) && !(promise in untouchable),
    )
  }

  /** Writes a line per promise: the promise, the number of its tests, and the first of them. */
  write(path: string): void {
    const lines = [...this.#tests].map(([promise, tests]) =>
      [promise, tests.size, ...[...tests].sort().slice(0, 3)].join('\t'),
    )
    const untouched = this.#untouched().map(promise => `${promise}\t${untouchable[promise] ?? ''}`)
    const title = `\nTouched by no test of this run: ${untouched.length} of ${lines.length}`
    writeFileSync(path, `${[...lines, title, ...untouched].join('\n')}\n`)
  }

  #untouched(): string[] {
    return [...this.#tests].flatMap(([promise, tests]) => (tests.size === 0 ? [promise] : []))
  }
}
