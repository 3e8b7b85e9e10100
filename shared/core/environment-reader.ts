export type Environment = Record<string, string | undefined>

/** Reads one variable; a missing or blank one, and one with a fault, is the fallback. */
export type ReadVariable = <T>(name: string, parse: (text: string) => T, fallback: T) => T

/** @param faults gets `<NAME> <message>` for each variable that its parser throws at */
export const environmentReader =
  (env: Environment, faults: string[]): ReadVariable =>
  (name, parse, fallback) => {
    const text = env[name]?.trim()
    if (!text) return fallback
    try {
      return parse(text)
    } catch (error) {
      faults.push(`${name} ${(error as Error).message}`)
      return fallback
    }
  }
