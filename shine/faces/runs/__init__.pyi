from .entries import Comparison as Comparison
from .entries import compare as compare
from .files import chosen_folder as chosen_folder
from .files import default_folder as default_folder
from .files import write_text as write_text
from .finding import Found as Found
from .finding import find as find
from .jobs import resume_job as resume_job
from .jobs import run_job as run_job
from .keeping import Notice as Notice
from .keeping import progress_record as progress_record
from .opening import Run as Run
from .opening import open_run as open_run
from .records import ModelRecord as ModelRecord
from .records import ResultRecord as ResultRecord
from .records import Versions as Versions
from .records import front_csv as front_csv
from .records import read_result as read_result
from .records import result_record as result_record
from .records import versions as versions
from .records import write_result as write_result

__all__: list[str]

def __dir__() -> list[str]: ...
