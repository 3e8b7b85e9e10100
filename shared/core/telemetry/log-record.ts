import { SeverityNumber, type Attributes, type LogRecord } from '@opentelemetry/api'

/** Pino's levels: https://getpino.io/#/docs/api?id=loggerlevels-object */
const severities: Record<number, [SeverityNumber, string]> = {
  10: [SeverityNumber.TRACE, 'TRACE'],
  20: [SeverityNumber.DEBUG, 'DEBUG'],
  30: [SeverityNumber.INFO, 'INFO'],
  40: [SeverityNumber.WARN, 'WARN'],
  50: [SeverityNumber.ERROR, 'ERROR'],
  60: [SeverityNumber.FATAL, 'FATAL'],
}

type LogError = { type?: string; message?: string; stack?: string[] }

type LogLine = Attributes & { level: number; time: number; msg?: string; err?: LogError }

/**
 * A line of the log as an OpenTelemetry event. Its message, `noun.verb`, is name and body; its fields are attributes,
 * its error has the names of the conventions for exceptions.
 */
export function toLogRecord(line: string): LogRecord {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as LogLine
  const [severityNumber, severityText] = severities[level] ?? [SeverityNumber.UNSPECIFIED, '']
  return {
    ...(msg !== undefined && { eventName: msg, body: msg }),
    timestamp: time,
    severityNumber,
    severityText,
    attributes: { ...fields, ...(err && exceptionAttributes(err)) },
  }
}

const exceptionAttributes = ({ type, message, stack, ...rest }: LogError): Attributes => ({
  ...(type !== undefined && { 'exception.type': type }),
  ...(message !== undefined && { 'exception.message': message }),
  ...(stack && { 'exception.stacktrace': stack.join('\n') }),
  // The code of an error, and its cause.
  ...(Object.keys(rest).length > 0 && { 'exception.details': JSON.stringify(rest) }),
})
