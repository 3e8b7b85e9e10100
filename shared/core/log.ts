import pino, { type Logger } from 'pino'

export type Log = Logger

/**
 * One JSON line per event: `log.info({ ids and counts }, 'noun.verb')`. Texts, keys and vectors are never fields;
 * redaction is the second line of defence.
 *
 * @param stream takes each line, beside the standard output
 */
export function createLog(
  level: string,
  name: string,
  stream?: { write(line: string): void },
): Log {
  const options = {
    name,
    level,
    base: { name },
    redact: {
      paths: [
        'text',
        'content',
        'messages',
        'key',
        'authorization',
        'headers',
        '*.text',
        '*.content',
      ],
      censor: '[redacted]',
    },
    serializers: { err: describeError },
  }
  if (!stream) return pino(options)
  const streams = [pino.destination(1), stream].map(one => ({
    level: 'trace' as const,
    stream: one,
  }))
  return pino(options, pino.multistream(streams))
}

/** Kind, code, message and stack of an error. Databases put values into messages and details: neither is logged. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error }
  const { code } = error as { code?: unknown }
  return {
    type: error.name,
    ...(code !== undefined && { code }),
    message: redactQuotedValues(error.message, String(code)),
    stack: error.stack?.split('\n').filter(line => line.startsWith('    at ')),
    ...(error.cause !== undefined && { cause: describeError(error.cause) }),
  }
}

/** Class 42 concerns our own SQL: it quotes names of tables and columns only. */
function redactQuotedValues(message: string, code: string): string {
  const line = message.split('\n', 1)[0]!.slice(0, 300)
  return code.startsWith('42') ? line : line.replaceAll(/"[^"]*"?/g, '"…"')
}
