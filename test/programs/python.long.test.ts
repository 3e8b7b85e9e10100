import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { installPython } from '#test/programs/install.ts'
import { pythonPrograms } from '#test/programs/python-programs.ts'
import { runProgram, startProgramWorld } from '#test/programs/run-program.ts'
import { noteSeen } from '#test/programs/seen.ts'

/**
 * The adapters of the client for Python in their frameworks, the oldest version and the newest: the lines of the page, two users, a tool loop, a stream that is stopped, a picture, a restart. `PROGRAM` names one of the files.
 */

const only = process.env.PROGRAM
t.setTimeout(1_500_000)
const { environment, newKey } = await startProgramWorld(t)
const client = join(t.testdir({}), 'client')
cpSync(fileURLToPath(new URL('../../api/client/python', import.meta.url)), client, {
  recursive: true,
})

const page = readFileSync(join(client, 'README.md'), 'utf8')

/** The lines of the page for a framework. */
const snippetOf = (name: string): string | undefined =>
  page.split(`\n### ${name}\n`)[1]?.split('```python\n')[1]?.split('\n```')[0]

for (const program of pythonPrograms.filter(({ file }) => !only || file.includes(only))) {
  for (const age of ['oldest', 'newest'] as const) {
    await t.test(`${program.name}, ${program[age][0]}`, { timeout: 900_000 }, async t => {
      const installed = await installPython(program[age])
      if ('missing' in installed) return t.pass(installed.missing, { skip: installed.missing })
      const env = {
        ...environment,
        RUN: `${crypto.randomUUID()}-`,
        PYTHONPATH: `${client}:${join(import.meta.dirname, 'python')}`,
        PYTHONDONTWRITEBYTECODE: '1',
        HOME: client,
        MEMORY_KEY: await newKey(),
        GOOGLE_GEMINI_BASE_URL: environment.GOOGLE_BASE_URL,
        OPENAI_AGENTS_DISABLE_TRACING: 'true',
        CREWAI_DISABLE_TELEMETRY: 'true',
      }
      const python = join(installed.folder, 'bin/python')
      await runProgram(
        t,
        python,
        ['-c', 'import setup; print(\'{"check": "built", "ok": true}\')'],
        {
          cwd: client,
          env,
        },
      )
      const snippet = snippetOf(program.name)
      if (snippet) {
        const shown = `${snippet}\nprint('\\n{"check": "the lines of the page run", "ok": true}')`
        await runProgram(t, python, ['-c', shown], { cwd: client, env })
      }
      const file = join(import.meta.dirname, 'python', program.file)
      for (const step of ['first', 'again']) {
        await runProgram(t, python, [file, step], { cwd: client, env })
      }
      if (t.passing()) noteSeen(program[age][0]!)
    })
  }
}
