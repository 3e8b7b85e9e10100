// Prints one line per test file, the details of failures, and a summary line.
import { Transform, type TransformCallback } from 'node:stream'
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

/** tap requires a reporter to be a stream class and the default export. */
export default class Report extends Transform {
  #passed = 0
  #skipped = 0
  #failures: string[] = []
  #parser = new Parser()

  constructor() {
    super()
    this.#parser.on('bailout', (reason: string) => this.#failures.push(`Bail out! ${reason}`))
    // Only the table of a run with coverage; the other comments of tap are for programs.
    this.#parser.on('comment', (text: string) => text.includes('|') && this.push(text))
    this.#follow(this.#parser, [])
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#parser.write(chunk)
    done()
  }

  override _flush(done: TransformCallback): void {
    this.#parser.end()
    for (const failure of this.#failures) this.push(`\n${marks.failed} ${failure}\n`)
    const failed = this.#failures.length
    this.push(`\n${this.#passed} passed, ${failed} failed, ${this.#skipped} skipped\n`)
    // tap counts a test without assertions as a success.
    if (failed > 0) process.exitCode ||= 1
    done()
  }

  /** Handles the results of a parser; those of a subtest come before its summary. */
  #follow(parser: Parser, path: readonly string[]): void {
    let subtest: { parser: Parser; before: number } | undefined
    parser.on('extra', (text: string) => this.push(text))
    parser.on('child', (child: Parser) => {
      subtest = { parser: child, before: this.#failures.length }
      this.#follow(child, [...path, child.name])
    })
    parser.on('assert', (result: Result) => {
      const title = [...path, result.name].join(' > ')
      if (!subtest) this.#count(result, title)
      else if (this.#failures.length === subtest.before) this.#sumUp(subtest.parser, result, title)
      if (path.length === 0) this.#announce(result, subtest?.before)
      subtest = undefined
    })
  }

  #count(result: Result, title: string): void {
    if (result.skip || result.todo) this.#skipped++
    else if (result.ok) this.#passed++
    else this.#failures.push(describe(result, title))
  }

  /** A subtest without failed assertions may fail itself: no plan, a timeout, a crash. */
  #sumUp(parser: Parser, result: Result, title: string): void {
    const isEmpty = parser.planEnd === 0 && /^(no tests found)?$/.test(parser.planComment)
    if (!result.ok && !result.todo) this.#failures.push(describe(result, title))
    else if (isEmpty) this.#failures.push(`${title}\nasserts nothing`)
    else if (result.skip || result.todo) this.#skipped++
  }

  #announce({ ok, skip, name, time }: Result, before = this.#failures.length): void {
    const failed = this.#failures.length - before
    const mark = failed > 0 || !ok ? marks.failed : skip ? marks.skipped : marks.passed
    this.push(`${mark} ${name} (${Math.round(time ?? 0)} ms)\n`)
  }
}

/** The details of a failure: the difference, the source, the stack. */
function describe({ diag }: Result, title: string): string {
  const facts = Object.entries(diag ?? {}).filter(
    ([name, value]) => !noise.has(name) && value !== null,
  )
  return facts.length === 0 ? title : `${title}\n${stringify(Object.fromEntries(facts)).trimEnd()}`
}
