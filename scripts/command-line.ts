import { parseArgs, type ParseArgsConfig } from 'node:util'

/** What a script may be told: option names as `parseArgs` describes them. */
type Options = NonNullable<ParseArgsConfig['options']>

type Values<Given extends Options> = ReturnType<typeof parseArgs<{ options: Given }>>['values']

const helpOption = { help: { type: 'boolean' } } as const

/**
 * Reads the command line of a script that takes options and no words. `--help` prints the help and
 * ends the process with 0, anything unknown says so, prints the usage and ends it with 2.
 */
export function optionsOf<const Given extends Options>(help: string, given: Given): Values<Given> {
  try {
    const { values } = parseArgs({ options: { ...given, ...helpOption } })
    if (!('help' in values)) return values
    process.stdout.write(help)
    process.exit(0)
  } catch (error) {
    process.stderr.write(faultOf([(error as Error).message], help))
    process.exit(2)
  }
}

/** The same for a script that takes words and no options. @returns the words. */
export function wordsOf(help: string): string[] {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: helpOption })
    if (!('help' in values)) return positionals
    process.stdout.write(help)
    process.exit(0)
  } catch (error) {
    process.stderr.write(faultOf([(error as Error).message], help))
    process.exit(2)
  }
}

/** What is said of a command line that is wrong: the faults, and the first line of the help. */
export const faultOf = (faults: readonly string[], help: string): string =>
  `${faults.join('\n')}\n\n${help.split('\n', 1)[0]}\nSee --help.\n`
