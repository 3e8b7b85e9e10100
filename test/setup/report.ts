import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { styleText } from 'node:util'
import { Parser, type Result } from 'tap-parser'
import { stringify } from 'tap-yaml'

/** Fields of a diagnosis that repeat the path and the stack. */
const noise = new Set(
  'args at command cwd externalID isToplevel jobId stdio tapCaught test'.split(' '),
)

const marks = {
  passed: styleText('green', '✓'),
  failed: styleText('red', '✗'),
  skipped: styleText('yellow', '-'),
}

type FileResult = { passed: number; skipped: number; failures: string[] }

/** Adds up the TAP of the processes of a run, a subtest per file; prints a line per file, then failures and counts. */
export class Report {
  readonly #write: (text: string) => void
  readonly #results = new Map<string, FileResult>()
  /** Failures of files that passed when they were run again. */
  readonly #flaky: string[] = []
  /** What was not run, with the reason. */
  readonly #skips = new Set<string>()

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  /** Reads the TAP of one process to its end. */
  async follow(tap: Readable): Promise<void> {
    const parser = new Parser()
    const of = { file: '' }
    parser.on('bailout', (reason: string) => this.fail(of.file, `Bail out! ${reason}`))
    this.#followTest(parser, [], of)
    await once(tap.pipe(parser), 'complete')
  }

  /** Adds a failure that is no assertion. */
  fail(file: string, reason: string): void {
    this.#resultOf(file).failures.push(`${file}\n${reason}`)
  }

  /** The files with failures, in the order of their names. */
  failedFiles(): string[] {
    return [...this.#results]
      .flatMap(([file, { failures }]) => (failures.length > 0 ? [file] : []))
      .sort()
  }

  /** Forgets the failures of a file, runs it again and calls it flaky if it passes then. */
  async repeat(file: string, run: () => Promise<void>): Promise<void> {
    const { failures } = this.#resultOf(file)
    this.#results.delete(file)
    await run()
    if (this.#resultOf(file).failures.length === 0) this.#flaky.push(...failures)
  }

  /** Prints the failures and, last, the counts. @returns whether nothing has failed. */
  finish(): boolean {
    const results = [...this.#results.values()]
    const failures = results.flatMap(result => result.failures)
    const sum = (of: 'passed' | 'skipped') =>
      results.reduce((total, result) => total + result[of], 0)
    for (const skip of this.#skips) this.#write(`\nskipped: ${skip}\n`)
    for (const failure of this.#flaky) this.#write(`\nflaky: ${failure}\n`)
    for (const failure of failures) this.#write(`\n${marks.failed} ${failure}\n`)
    this.#write(`\n${sum('passed')} passed, ${failures.length} failed, ${sum('skipped')} skipped\n`)
    return failures.length === 0 && results.length > 0
  }

  #resultOf(file: string): FileResult {
    const result = this.#results.get(file) ?? { passed: 0, skipped: 0, failures: [] }
    this.#results.set(file, result)
    return result
  }

  /** Handles the results of a test; those of a subtest come before its summary. */
  #followTest(parser: Parser, path: readonly string[], of: { file: string }): void {
    let subtest: { parser: Parser; before: number } | undefined
    parser.on('extra', (text: string) => this.#write(text))
    parser.on('child', (child: Parser) => {
      if (path.length === 0) of.file = child.name
      subtest = { parser: child, before: this.#resultOf(of.file).failures.length }
      this.#followTest(child, [...path, child.name], of)
    })
    parser.on('assert', (result: Result) => {
      const title = [...path, result.name].join(' > ')
      const { failures } = this.#resultOf(of.file)
      if (!subtest) this.#count(result, title, of.file)
      else if (failures.length === subtest.before)
        this.#sumUp(subtest.parser, result, title, of.file)
      if (path.length === 0 && subtest) this.#announce(result, failures.length > subtest.before)
      subtest = undefined
    })
  }

  #count(result: Result, title: string, file: string): void {
    const counts = this.#resultOf(file)
    if (typeof result.skip === 'string') this.#skips.add(`${title}: ${result.skip}`)
    if (result.skip || result.todo) counts.skipped++
    else if (result.ok) counts.passed++
    else counts.failures.push(describe(result, title))
  }

  /** A subtest without failed assertions may fail itself: no plan, a timeout, a crash. */
  #sumUp(parser: Parser, result: Result, title: string, file: string): void {
    const counts = this.#resultOf(file)
    const isEmpty = parser.planEnd === 0 && /^(no tests found)?$/.test(parser.planComment)
    if (!result.ok && !result.todo) counts.failures.push(describe(result, title))
    else if (isEmpty) counts.failures.push(`${title}\nasserts nothing`)
    else if (result.skip || result.todo) counts.skipped++
  }

  #announce({ ok, skip, name, time }: Result, hasFailed: boolean): void {
    const mark = hasFailed || !ok ? marks.failed : skip ? marks.skipped : marks.passed
    this.#write(`${mark} ${name} (${Math.round(time ?? 0)} ms)\n`)
  }
}

/** The details of a failure: the difference, the source, the stack. */
function describe({ diag }: Result, title: string): string {
  const facts = Object.entries(diag ?? {}).filter(
    ([name, value]) => !noise.has(name) && value !== null,
  )
  return facts.length === 0 ? title : `${title}\n${stringify(Object.fromEntries(facts)).trimEnd()}`
}
