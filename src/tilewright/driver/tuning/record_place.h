// Which store holds the tuning records of this user.
//
//   --store NAME  >  TILEWRIGHT_STORE  >  TILEWRIGHT_RECORDS  >  the settings  >  the user's file
//
// The settings name a fleet's database once `fleet init --store` was told one. Nobody named that
// for the command at hand, so a command that only reads does without where it does not answer at
// once.
#pragma once

#include <memory>
#include <string>

#include "tilewright/base/result.h"
#include "tilewright/records/store.h"

namespace tilewright::driver {

struct RecordPlace {
  std::string name;    ///< as records::open_any_store takes it
  std::string source;  ///< who says so: `--store`, a variable, a file of settings, `default`
  bool by_settings = false;
};
/// `flag`: what the command line says, or empty. Settings that cannot be read are warned of.
RecordPlace record_place(const std::string& flag);

/// For who only reads. A store of the settings is waited for no longer than a second in all, once:
/// where it did not answer, a warning says so, and the user's own file is read if there is one.
/// Null: there are no records. errors: of a store that was named.
Result<std::shared_ptr<records::Store>> open_place_to_read(const RecordPlace& place);

/// One line for `doctor`: the store and whether it answers.
struct PlaceState {
  bool ok;
  std::string text;
};
PlaceState state_of_place(const RecordPlace& place);

}  // namespace tilewright::driver
