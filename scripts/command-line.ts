import { parseArgs, type ParseArgsConfig } from 'node:util'

/** What a script may be told: option names as `parseArgs` describes them. */
type OptionDefinitions = NonNullable<ParseArgsConfig['options']>

type OptionValues<Given extends OptionDefinitions> = ReturnType<
  typeof parseArgs<{ options: Given }>
>['values']

const helpOption = { help: { type: 'boolean' } } as const

/**
 * Reads the command line of a script that takes options and no words. `--help` prints the help and
 * ends the process with 0, anything unknown says so, prints the usage and ends it with 2.
 */
export function parseOptions<const Given extends OptionDefinitions>(
  help: string,
  definitions: Given,
): OptionValues<Given> {
  try {
    const { values } = parseArgs({ options: { ...definitions, ...helpOption } })
    if (!('help' in values)) return values
    process.stdout.write(help)
    process.exit(0)
  } catch (error) {
    process.stderr.write(formatUsageError([(error as Error).message], help))
    process.exit(2)
  }
}

/** The same for a script that takes words and no options. @returns the words. */
export function parsePositionals(help: string): string[] {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: helpOption })
    if (!('help' in values)) return positionals
    process.stdout.write(help)
    process.exit(0)
  } catch (error) {
    process.stderr.write(formatUsageError([(error as Error).message], help))
    process.exit(2)
  }
}

/** What is said of a command line that is wrong: the faults, and the first line of the help. */
export const formatUsageError = (faults: readonly string[], help: string): string =>
  `${faults.join('\n')}\n\n${help.split('\n', 1)[0]}\nSee --help.\n`
