// Imported by every test that needs the services: afterwards DATABASE_URL and MONGODB_URI are set.
// A test file run by itself starts them, or finds them still running from the last time.
import { areDatabasesGiven, requestServices } from '#test/setup/shared-services.ts'

if (!areDatabasesGiven()) {
  const { addresses, connection } = await requestServices({ do: 'join' })
  process.env['DATABASE_URL'] = addresses.databaseUrl
  process.env['MONGODB_URI'] = addresses.mongodbUri
  // Open for as long as this process lives, and no reason for it to live.
  connection.unref()
}
